//! New positions of old offsets of a section, according to the certificate.
//!
//! Invariants: a map is only made of a certificate whose sites and runs ascend and are inside of both sections; its
//! correctness is proven by the walk.

use hotswap_report::{SectionCertificate, SiteCertificate};

pub(crate) struct AddressMap {
    /// In the order of the old offsets; from each point on both offsets advance alike, up to the next.
    points: Vec<MapPoint>,
    pub(crate) sites: Vec<SiteCertificate>,
    pub(crate) old_size: u32,
    pub(crate) new_size: u32,
}

/// An old offset and the new one at which its code continues.
#[derive(Clone, Copy)]
struct MapPoint {
    old: u32,
    new: u32,
}

impl MapPoint {
    /// The new offset of an old one that follows the point.
    fn advance_to(self, old: u32) -> Option<u32> {
        self.new.checked_add(old - self.old)
    }
}

const START: MapPoint = MapPoint { old: 0, new: 0 };

impl AddressMap {
    /// The map of a section; without a certificate nothing moves.
    pub(crate) fn new(section: Option<&SectionCertificate>, old_size: u32, new_size: u32) -> Result<Self, String> {
        let Some(section) = section else {
            return Ok(Self { points: vec![START], sites: Vec::new(), old_size, new_size });
        };
        if (section.old_size, section.new_size) != (old_size, new_size) {
            let what = "sizes of sections are not those of the certificate: it belongs to other files";
            return Err(what.to_owned());
        }
        let rises = section.sites.windows(2).all(|pair| pair[0].old + pair[0].old_size <= pair[1].old);
        let inside = section.sites.iter().all(|site| {
            site.old.checked_add(site.old_size).is_some_and(|end| end <= old_size) && site.new.end <= new_size
        });
        if !rises || !inside {
            return Err("sites of the certificate overlap or leave their section".to_owned());
        }
        let behind = section.sites.iter().map(|site| MapPoint { old: site.old + site.old_size, new: site.new.end });
        let mut points = vec![START];
        points.extend(behind);
        // A run that begins at the end of a site takes precedence.
        points.extend(section.runs.iter().map(|run| MapPoint { old: run.old, new: run.new }));
        points.sort_by_key(|point| point.old);
        let mut unique: Vec<MapPoint> = Vec::with_capacity(points.len());
        for point in points {
            match unique.last_mut().filter(|last| last.old == point.old) {
                Some(last) => *last = point,
                None => unique.push(point),
            }
        }
        Ok(Self { points: unique, sites: section.sites.clone(), old_size, new_size })
    }

    /// The new start of the code at an old offset, which labels denote. `None` inside of a changed instruction.
    pub(crate) fn new_start(&self, old: u32) -> Option<u32> {
        let next = self.sites.partition_point(|site| site.old < old);
        let inside = next.checked_sub(1).map(|site| &self.sites[site]);
        if inside.is_some_and(|site| old < site.old + site.old_size) || old > self.old_size {
            return None;
        }
        let found = self.points.partition_point(|point| point.old <= old).checked_sub(1)?;
        self.points[found].advance_to(old)
    }

    /// The new end of the code that ends at an old offset.
    pub(crate) fn new_end(&self, old: u32) -> Option<u32> {
        if old == 0 {
            return Some(0);
        }
        let next = self.sites.partition_point(|site| site.old + site.old_size < old);
        if let Some(site) = self.sites.get(next).filter(|site| site.old + site.old_size == old) {
            return Some(site.new.end);
        }
        let found = self.points.partition_point(|point| point.old < old).checked_sub(1)?;
        self.points[found].advance_to(old)
    }

    /// The new position of an old offset at which the distance between old and new code changes.
    pub(crate) fn point_at(&self, old: u32) -> Option<u32> {
        let found = self.points.binary_search_by_key(&old, |point| point.old).ok()?;
        Some(self.points[found].new)
    }

    /// The first point after an old offset.
    pub(crate) fn next_point(&self, old: u32) -> u32 {
        let next = self.points.partition_point(|point| point.old <= old);
        self.points.get(next).map_or(self.old_size, |point| point.old)
    }

    /// The site at an old offset.
    pub(crate) fn site_at(&self, old: u32) -> Option<&SiteCertificate> {
        let found = self.sites.binary_search_by_key(&old, |site| site.old).ok()?;
        Some(&self.sites[found])
    }

    /// The first site at or after an old offset.
    pub(crate) fn next_site(&self, old: u32) -> u32 {
        let next = self.sites.partition_point(|site| site.old < old);
        self.sites.get(next).map_or(self.old_size, |site| site.old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_report::MapRun;

    #[test]
    fn places_follow_sites_and_runs() {
        let site = SiteCertificate { old: 8, old_size: 8, new: 8..32, ..SiteCertificate::default() };
        let runs = vec![MapRun { old: 0x100, new: 0x200 }];
        let section = SectionCertificate { old_size: 0x140, new_size: 0x240, sites: vec![site], runs, number: 1 };
        let map = AddressMap::new(Some(&section), 0x140, 0x240).unwrap();
        assert_eq!(
            [0, 8, 12, 16, 0x100, 0x104].map(|old| map.new_start(old)),
            [Some(0), Some(8), None, Some(32), Some(0x200), Some(0x204)]
        );
        assert_eq!([8, 16, 0x100].map(|old| map.new_end(old)), [Some(8), Some(32), Some(0x110)]);
        assert!(AddressMap::new(Some(&section), 0x144, 0x240).is_err());
    }
}
