//! Provenance in the forms of the supply chain: a bill of materials (SPDX 2.3) and in-toto statements (SLSA provenance 1).
//!
//! Invariants: code that does not match its record lacks an origin; equal files give equal texts (the time of an
//! SPDX document is `SOURCE_DATE_EPOCH`, else 1970).
//!
//! Absent on purpose: signatures.

use crate::calendar::CalendarTime;
use hotswap_load_model::acceptance::sha256_of;
use serde_json::{Value, json};

/// The JSON report of one file, and the hash of the file.
pub struct NamedReport<'a> {
    pub json: Value,
    pub sha256: &'a str,
}

/// One code object in a file.
struct CodeEntry<'a> {
    /// The entry in the report.
    json: &'a Value,
    record: &'a Value,
    /// Unique in the document.
    id: String,
    name: String,
}

impl CodeEntry<'_> {
    /// Whether HotSwap made it, and its record holds.
    fn is_made(&self) -> bool {
        let is_made = !matches!(self.json["route"].as_str(), None | Some("native" | "generic"));
        is_made && self.json["verdict"] == "verified"
    }

    /// How it was made: the route, and each patch family with its number of places.
    fn rule(&self) -> String {
        let families = self.json["families"].as_array().into_iter().flatten();
        let families: Vec<String> = families
            .map(|family| format!("{} {}", family["name"].as_str().unwrap_or_default(), family["sites"]))
            .collect();
        let route = self.json["route"].as_str().unwrap_or_default();
        let version = self.record["hotswap"].as_str().unwrap_or_default();
        format!(
            "HotSwap {version}: {route} of {}; {}",
            self.json["source"].as_str().unwrap_or("?"),
            families.join(", ")
        )
    }
}

/// The code objects of the report, in their order. Entries without bytes of their own (the host's) are left out.
fn entries(number: usize, report: &Value) -> Vec<CodeEntry<'_>> {
    let mut found = Vec::new();
    let containers = report["containers"].as_array().into_iter().flatten().enumerate();
    for (at, container) in containers {
        for json in container["entries"].as_array().into_iter().flatten() {
            if json["target"].is_string() && json["sha256"].is_string() {
                let id = format!("{number}-{at}-{}", json["number"]);
                let name = format!("{}#{}", container["place"].as_str().unwrap_or_default(), target(json));
                found.push(CodeEntry { json, record: &container["record"], id, name });
            }
        }
    }
    found
}

fn target(entry: &Value) -> &str {
    entry["target"].as_str().unwrap_or_default()
}

/// The bill of materials.
pub fn spdx(files: &[NamedReport<'_>]) -> Value {
    let (mut packages, mut relations) = (Vec::new(), Vec::new());
    for (number, file) in files.iter().enumerate() {
        let id = format!("SPDXRef-File-{number}");
        let name = file.json["file"].as_str().unwrap_or_default();
        packages.push(package(&id, name, file.sha256, "FILE"));
        relations.push(relation("SPDXRef-DOCUMENT", "DESCRIBES", &id, None));
        let entries = entries(number, &file.json);
        for entry in &entries {
            let code = format!("SPDXRef-Code-{}", entry.id);
            packages.push(package(&code, &entry.name, entry.json["sha256"].as_str().unwrap_or_default(), "OTHER"));
            relations.push(relation(&id, "CONTAINS", &code, None));
            if entry.is_made() {
                let source = source_of(entry, &entries, &mut packages);
                relations.push(relation(&code, "GENERATED_FROM", &source, Some(entry.rule())));
            }
        }
    }
    let content = json!([packages, relations]).to_string();
    let hash = sha256_of(content.as_bytes());
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "device code",
        "documentNamespace": format!("urn:hotswap:inspect:{hash}"),
        "creationInfo": { "created": created(), "creators": [format!("Tool: hotswap-{}", env!("CARGO_PKG_VERSION"))] },
        "packages": packages,
        "relationships": relations,
    })
}

/// The source's element: the entry with its hash, or one of its own where the source is not in the file any more.
fn source_of(entry: &CodeEntry<'_>, entries: &[CodeEntry<'_>], packages: &mut Vec<Value>) -> String {
    let hash = &entry.json["source_sha256"];
    if let Some(source) = entries.iter().find(|other| !hash.is_null() && other.json["sha256"] == *hash) {
        return format!("SPDXRef-Code-{}", source.id);
    }
    let id = format!("SPDXRef-Source-{}", entry.id);
    let name = format!("removed source#{}", entry.json["source"].as_str().unwrap_or("?"));
    packages.push(package(&id, &name, hash.as_str().unwrap_or_default(), "OTHER"));
    id
}

fn package(id: &str, name: &str, sha256: &str, purpose: &str) -> Value {
    let mut package = json!({
        "SPDXID": id,
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "primaryPackagePurpose": purpose,
    });
    if !sha256.is_empty() {
        package["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": sha256 }]);
    }
    package
}

fn relation(from: &str, kind: &str, to: &str, comment: Option<String>) -> Value {
    let mut value = json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to });
    if let Some(comment) = comment {
        value["comment"] = comment.into();
    }
    value
}

/// The time that the document states.
fn created() -> String {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    utc(set.unwrap_or(0))
}

/// Seconds since 1970 as SPDX writes a time.
fn utc(seconds: u64) -> String {
    let CalendarTime { year, month, day, hour, minute, second } = CalendarTime::from_unix_seconds(seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A line for each code object that HotSwap made.
pub fn intoto(files: &[NamedReport<'_>]) -> String {
    let mut lines = String::new();
    for (number, file) in files.iter().enumerate() {
        let name = file.json["file"].as_str().unwrap_or_default();
        for entry in entries(number, &file.json).iter().filter(|entry| entry.is_made()) {
            lines += &format!("{}\n", statement(name, file.sha256, entry));
        }
    }
    lines
}

fn statement(file: &str, file_hash: &str, entry: &CodeEntry<'_>) -> Value {
    let CodeEntry { json, record, .. } = entry;
    let mut source = json!({ "name": format!("{file}#{}", json["source"].as_str().unwrap_or("?")) });
    if json["source_sha256"].is_string() {
        source["digest"] = json!({ "sha256": json["source_sha256"] });
    }
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "name": format!("{file}#{}", entry.name), "digest": { "sha256": json["sha256"] } }],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:hotswap:retarget:v1",
                "externalParameters": { "target": json["target"], "plan": record["plan"], "plan_text": record["plan_text"] },
                "internalParameters": { "route": json["route"], "families": json["families"], "file_sha256": file_hash },
                "resolvedDependencies": [source],
            },
            "runDetails": {
                "builder": {
                    "id": format!("urn:hotswap:{}", record["identity"].as_str().unwrap_or_default()),
                    "version": { "hotswap": record["hotswap"] },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(verdict: &str) -> Value {
        let entry = |number: u32, target: &str, route: Value, sha: &str, source: Value| {
            json!({ "number": number, "target": target, "sha256": sha, "route": route, "verdict": verdict, "source": source,
                    "source_sha256": if source.is_null() { Value::Null } else { "aa".into() },
                    "families": [{ "name": "machine_flags", "sites": 1 }] })
        };
        let entries = [
            entry(1, "gfx1030", Value::Null, "aa", Value::Null),
            entry(2, "gfx1031", "alias".into(), "bb", "gfx1030".into()),
        ];
        let record = json!({ "hotswap": "0.1.0", "identity": "id", "plan": "p", "plan_text": "t" });
        json!({ "file": "x", "containers": [{ "place": ".hip_fatbin", "record": record, "entries": entries }] })
    }

    #[test]
    fn a_made_code_object_names_its_source_and_its_rule() {
        let files = [NamedReport { json: report("verified"), sha256: "ff" }];
        let document = spdx(&files);
        let made = document["relationships"].as_array().unwrap();
        let made: Vec<&Value> = made.iter().filter(|one| one["relationshipType"] == "GENERATED_FROM").collect();
        assert_eq!(made.len(), 1);
        assert_eq!(
            (&made[0]["spdxElementId"], &made[0]["relatedSpdxElement"]),
            (&json!("SPDXRef-Code-0-0-2"), &json!("SPDXRef-Code-0-0-1"))
        );
        assert_eq!(made[0]["comment"], "HotSwap 0.1.0: alias of gfx1030; machine_flags 1");
        let line: Value = serde_json::from_str(intoto(&files).trim()).unwrap();
        assert_eq!(line["subject"][0]["digest"]["sha256"], "bb");
        assert_eq!(line["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["sha256"], "aa");
        assert_eq!(document, spdx(&files));
    }

    #[test]
    fn bytes_that_do_not_match_their_record_have_no_origin() {
        let files = [NamedReport { json: report("wrong"), sha256: "ff" }];
        assert!(!spdx(&files).to_string().contains("GENERATED_FROM"));
        assert_eq!(intoto(&files), "");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
