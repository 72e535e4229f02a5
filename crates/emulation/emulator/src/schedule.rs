//! Runs the work-groups of a dispatch: on several threads, several at a time on each.
//!
//! Invariants: every wave that can go on gets its turn, whatever the others do. A thread takes a further work-group when
//! one has ended, or when those that it has make no end for long: they may wait for one that has not begun.

use crate::code::CodeCache;
use crate::device::EmulatedDevice;
use crate::dispatch::{DispatchCounts, KernelDispatch};
use crate::fault::{ExecutionFault, FaultKind, FaultPlace};
use crate::group::Workgroup;
use crate::memory::DeviceMemory;
use crate::micro::{ExecContext, LaneSpaces, MicroOp, StepFault, StepFlow};
use crate::wave::WaveStatus;
use crate::wave_launch::WaveTemplate;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Rounds without an end of a work-group after which another one begins.
const PATIENCE: u32 = 64;
/// Waves that a thread has at most.
const RESIDENT: usize = 2048;
/// Rounds in which all waves only yielded after which the thread sleeps.
const IDLE: u32 = 16;

/// The state that the threads of a dispatch share.
struct SharedState<'a> {
    device: &'a EmulatedDevice,
    memory: &'a dyn DeviceMemory,
    template: &'a WaveTemplate<'a>,
    /// Work-groups in each dimension.
    counts: [u32; 3],
    next: AtomicU64,
    failed: AtomicBool,
    fault: Mutex<Option<ExecutionFault>>,
}

/// Executes a dispatch to its end. The completion signal is the caller's.
///
/// Work-groups run on all threads of the device, and several at a time on each thread, so a kernel may wait for another
/// work-group (if all of them fit, as on a GPU) or for the host.
///
/// # Errors
/// The first fault; other waves are stopped then.
pub fn run_dispatch(
    device: &EmulatedDevice,
    memory: &dyn DeviceMemory,
    dispatch: &KernelDispatch,
) -> Result<DispatchCounts, ExecutionFault> {
    let template = WaveTemplate::new(device, memory, dispatch)?;
    run_workers(device, memory, &template, dispatch)
}

fn run_workers(
    device: &EmulatedDevice,
    memory: &dyn DeviceMemory,
    template: &WaveTemplate<'_>,
    dispatch: &KernelDispatch,
) -> Result<DispatchCounts, ExecutionFault> {
    let packet = &dispatch.packet;
    let counts = std::array::from_fn(|number| packet.grid[number].div_ceil(packet.workgroup[number].into()));
    let shared = SharedState {
        device,
        memory,
        template,
        counts,
        next: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        fault: Mutex::default(),
    };
    let threads = (device.threads as u64).min(shared.workgroup_count()).max(1);
    let mut total = DispatchCounts::default();
    if threads == 1 {
        total.add(&Worker::new(&shared).run_workgroups());
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(|| Worker::new(&shared).run_workgroups())).collect();
            handles.into_iter().filter_map(|handle| handle.join().ok()).for_each(|counts| total.add(&counts));
        });
    }
    match shared.fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(fault) => Err(fault),
        None => Ok(total),
    }
}

impl SharedState<'_> {
    fn workgroup_count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).product()
    }

    /// The next work-group that has not begun.
    fn take_workgroup(&self) -> Option<[u32; 3]> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let [x, y, _] = self.counts.map(u64::from);
        (number < self.workgroup_count())
            .then(|| [(number % x) as u32, (number / x % y) as u32, (number / (x * y)) as u32])
    }

    fn report_fault(&self, fault: ExecutionFault) {
        self.failed.store(true, Ordering::Relaxed);
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    fn is_stopped(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.device.stop.load(Ordering::Relaxed)
    }
}

/// Executions of each entry of the instruction tables, and its mnemonic.
type CountsByEntry = BTreeMap<u16, (u64, &'static str)>;

struct Worker<'a> {
    shared: &'a SharedState<'a>,
    code: CodeCache,
    groups: Vec<Workgroup>,
    counts: DispatchCounts,
    by_entry: CountsByEntry,
    spaces: Box<LaneSpaces>,
}

/// How a wave's turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnEnd {
    /// It used its time.
    Worked,
    /// The wave gave way to others.
    Yielded,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a SharedState<'a>) -> Self {
        let code = CodeCache::of_device(shared.device, shared.template.isa, shared.template.limits);
        Self {
            shared,
            code,
            groups: Vec::new(),
            counts: DispatchCounts::default(),
            by_entry: BTreeMap::new(),
            spaces: Box::default(),
        }
    }

    fn run_workgroups(mut self) -> DispatchCounts {
        self.code.discard_stale(self.shared.memory);
        let (mut rounds, mut idle) = (0, 0);
        loop {
            let resident: usize = self.groups.iter().map(|group| group.waves.len()).sum();
            if self.groups.is_empty() || rounds >= PATIENCE && resident < RESIDENT {
                rounds = 0;
                match self.shared.take_workgroup() {
                    Some(number) => self.groups.push(self.shared.template.build_workgroup(number)),
                    None if self.groups.is_empty() => break,
                    None => {}
                }
            }
            let (worked, ended) = match self.run_round() {
                Ok(result) => result,
                Err(fault) => {
                    self.shared.report_fault(fault);
                    break;
                }
            };
            rounds = if ended { 0 } else { rounds + 1 };
            idle = if worked { 0 } else { idle + 1 };
            if idle > IDLE {
                std::thread::sleep(Duration::from_micros(20));
            }
        }
        self.code.release_to_device(self.shared.device);
        for (count, mnemonic) in self.by_entry.into_values() {
            *self.counts.by_mnemonic.entry(mnemonic).or_default() += count;
        }
        self.counts
    }

    /// A turn of every wave; whether any did more than to give way, and whether a work-group ended.
    fn run_round(&mut self) -> Result<(bool, bool), ExecutionFault> {
        let mut worked = false;
        for number in 0..self.groups.len() {
            worked |= self.turn_of_group(number)?;
        }
        let before = self.groups.len();
        let mut counts = std::mem::take(&mut self.counts);
        self.groups.retain(|group| {
            if group.has_ended() {
                counts.workgroups += 1;
                counts.waves += group.waves.len() as u64;
                counts.undetermined += group.waves.iter().map(|wave| wave.undetermined).sum::<u64>();
                counts.instructions += group.waves.iter().map(|wave| wave.executed).sum::<u64>();
            }
            !group.has_ended()
        });
        self.counts = counts;
        Ok((worked, self.groups.len() < before))
    }

    fn turn_of_group(&mut self, number: usize) -> Result<bool, ExecutionFault> {
        let group = &mut self.groups[number];
        if !group.wake_waves() && !group.has_ended() {
            let place = FaultPlace { workgroup: group.number, ..FaultPlace::default() };
            return Err(ExecutionFault { kind: FaultKind::Deadlock, place });
        }
        let mut worked = false;
        for wave in 0..group.waves.len() {
            if self.groups[number].waves[wave].status == WaveStatus::Runs {
                worked |= self.run_turn(number, wave)? == TurnEnd::Worked;
            }
        }
        Ok(worked)
    }

    fn run_turn(&mut self, group: usize, wave: usize) -> Result<TurnEnd, ExecutionFault> {
        if self.shared.is_stopped() {
            let place = self.fault_place(group, wave);
            return Err(ExecutionFault { kind: FaultKind::Stopped, place });
        }
        self.run_steps(group, wave).map_err(|fault| {
            let StepFault { kind, lane } = *fault;
            let place = FaultPlace { lane, ..self.fault_place(group, wave) };
            ExecutionFault { kind, place }
        })
    }

    fn fault_place(&self, group: usize, wave: usize) -> FaultPlace {
        let group = &self.groups[group];
        FaultPlace { pc: group.waves[wave].pc, lane: None, wave: wave as u32, workgroup: group.number }
    }

    /// The instructions of a turn.
    fn run_steps(&mut self, group: usize, wave: usize) -> Result<TurnEnd, Box<StepFault>> {
        let Self { shared, code, groups, by_entry, spaces, .. } = self;
        let Workgroup { waves, lds, barrier, .. } = &mut groups[group];
        let wave = &mut waves[wave];
        let limit = shared.device.instruction_budget.unwrap_or(u64::MAX);
        let last = (wave.executed + shared.device.turn).min(limit);
        let is_followed = shared.device.counters || wave.late.is_some();
        let LaneSpaces { narrow, wide } = &mut **spaces;
        let mut step = ExecContext {
            wave,
            lds,
            barrier,
            memory: shared.memory,
            device: shared.device,
            space: narrow,
            wide_space: wide,
        };
        while step.wave.executed < last {
            let ops = code.block_at(step.wave.pc, step.wave.banks, shared.memory)?;
            let left = usize::try_from(last - step.wave.executed).unwrap_or(usize::MAX);
            for op in &ops[..ops.len().min(left)] {
                if is_followed {
                    count_and_check(&mut step, op, by_entry)?;
                }
                let flow = (op.handler)(&mut step, op)?;
                step.wave.executed += 1;
                if flow == StepFlow::Next {
                    step.wave.pc += u64::from(op.length);
                    continue;
                }
                match flow {
                    StepFlow::Next => {}
                    StepFlow::Jump => break,
                    StepFlow::Stop => return Ok(TurnEnd::Worked),
                    StepFlow::Again => return Ok(TurnEnd::Yielded),
                    StepFlow::Yield => {
                        step.wave.pc += u64::from(op.length);
                        return Ok(TurnEnd::Yielded);
                    }
                }
            }
        }
        if step.wave.executed >= limit {
            return Err(StepFault::new(FaultKind::BudgetExhausted));
        }
        Ok(TurnEnd::Worked)
    }
}

/// Counts an instruction that is about to be executed, and checks its registers where results are late.
fn count_and_check(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    by_entry: &mut CountsByEntry,
) -> Result<(), Box<StepFault>> {
    if step.device.counters {
        let entry = op.inst.entry();
        by_entry.entry(entry.id()).or_insert((0, entry.mnemonic())).0 += 1;
    }
    let banks = step.wave.register_banks();
    match &mut step.wave.late {
        Some(late) => late.track_instruction(&op.inst, banks).map_err(StepFault::new),
        None => Ok(()),
    }
}
