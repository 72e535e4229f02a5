//! A work-group that runs: its waves, LDS and barrier.

use crate::wave::{WaveState, WaveStatus};

/// The barrier of a work-group.
#[derive(Debug, Default)]
pub(crate) struct GroupBarrier {
    /// Waves that have not ended.
    pub(crate) alive: u32,
    /// Waves that have signalled in this phase.
    signalled: u32,
    /// Number of phases that were completed.
    pub(crate) phase: u64,
    /// Signals at the barrier of the cluster, which is this work-group alone: each of them completes a phase.
    pub(crate) cluster_phase: u64,
}

impl GroupBarrier {
    /// Of a work-group with that many waves.
    pub(crate) fn new(alive: u32) -> Self {
        Self { alive, ..Self::default() }
    }

    /// A wave arrives; returns the phase that it arrived in, and whether it was the first one.
    pub(crate) fn signal_arrival(&mut self) -> (u64, bool) {
        let phase = self.phase;
        self.signalled += 1;
        let first = self.signalled == 1;
        self.complete_if_signalled();
        (phase, first)
    }

    /// A wave has ended; others do not wait for it.
    pub(crate) fn remove_wave(&mut self) {
        self.alive -= 1;
        self.complete_if_signalled();
    }

    fn complete_if_signalled(&mut self) {
        if self.signalled > 0 && self.signalled >= self.alive {
            self.signalled = 0;
            self.phase += 1;
        }
    }
}

/// A work-group that runs.
#[derive(Debug)]
pub(crate) struct Workgroup {
    pub(crate) number: [u32; 3],
    pub(crate) waves: Vec<WaveState>,
    pub(crate) lds: Vec<u8>,
    pub(crate) barrier: GroupBarrier,
}

impl Workgroup {
    /// Whether all waves have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.barrier.alive == 0
    }

    /// Whether some wave can go on. Barriers that were completed are left.
    pub(crate) fn wake_waves(&mut self) -> bool {
        let (phase, cluster_phase) = (self.barrier.phase, self.barrier.cluster_phase);
        let mut any = false;
        for wave in &mut self.waves {
            if matches!(wave.status, WaveStatus::AtBarrier(waited) if waited != phase) {
                wave.status = WaveStatus::Runs;
            }
            if wave.status == WaveStatus::AtClusterBarrier && cluster_phase > wave.cluster_waits {
                (wave.status, wave.cluster_waits) = (WaveStatus::Runs, wave.cluster_waits + 1);
            }
            any |= wave.status == WaveStatus::Runs;
        }
        any
    }
}
