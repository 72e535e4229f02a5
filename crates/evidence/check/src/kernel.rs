//! Whole kernels: both code objects are launched with the same arguments and the same memory.
//!
//! Invariants: every address of memory exists, so that arguments need not mean anything; what a launch writes is compared.
//! Words that hold addresses of code are the same if they lead to the same code.

use crate::memory::{SeededMemory, WatchedWrite};
use crate::object::{CheckedObject, CodeOffset, OffsetMap};
use crate::pair::differing_words;
use crate::random::{NumberTheme, Random, THEMES, mix_seed};
use crate::report::{Difference, DifferingValue};
use crate::site::{is_unknown, unknown_name};
use hotswap_code_object::kernel_descriptor::{self as field, KernelDescriptor};
use hotswap_emulator::{
    AqlDispatch, DeviceMemory, DirectLaunch, DispatchCounts, EmulatedDevice, ExecutionFault, FaultKind, KernelDispatch,
    LoadedKernel, argument_bytes, packet_bytes, queue_bytes, run_dispatch,
};
use std::sync::atomic::Ordering;

/// Where a launch has its arguments, its packet and its queue.
const ARGUMENTS: u64 = 0x6000_0000_0000;
const PACKET: u64 = 0x6000_0010_0000;
const QUEUE: u64 = 0x6000_0020_0000;
/// The first buffer, and the distance of the next one.
const BUFFERS: u64 = 0x5000_0000_0000;
const BUFFER: u64 = 1 << 32;
/// Work-items of a work-group in every fourth launch.
const WIDE: u32 = 256;
const LDS: u32 = 4096;

/// The result of a launch.
pub(crate) enum LaunchResult {
    /// Both did the same.
    Equal,
    /// The budget was exhausted.
    Unfinished,
    /// The original's result depends on the order of its waves.
    Unordered,
    /// Lanes of the original store different values to one place by one instruction.
    Meeting,
    /// The ends, or what was written, differ.
    Different(Box<Difference>),
    /// It cannot be executed.
    Unchecked(String),
}

/// Both sides of a kernel.
pub(crate) struct KernelPair<'a> {
    pub(crate) objects: [&'a CheckedObject<'a>; 2],
    pub(crate) memories: [&'a SeededMemory; 2],
    pub(crate) kernels: [&'a LoadedKernel; 2],
    pub(crate) maps: &'a [OffsetMap<'a>],
    /// Replacements rely on rounding to the nearest and on denormals, which the descriptor sets.
    pub(crate) plain_modes: bool,
    /// Work-items of the largest work-group.
    pub(crate) largest: u32,
    /// Lanes of a wave, if all of them must be on: products of matrices are not specified in other waves.
    pub(crate) full_wave: Option<u32>,
}

/// Work-items of a work-group, and of all of them.
struct LaunchSizes {
    workgroup: u32,
    grid: u32,
}

/// A launch: sizes, arguments, modes.
#[derive(Debug)]
struct DrawnLaunch {
    grid: u32,
    workgroup: u32,
    arguments: Vec<Vec<u8>>,
    theme: NumberTheme,
    seed: u64,
    late: bool,
    /// Rounding of 32 bits, denormals and overflow, where they are not the kernel's own.
    modes: Option<[u64; 3]>,
}

type LaunchEnd = Result<DispatchCounts, ExecutionFault>;

impl KernelPair<'_> {
    /// Launches both, the launch of that number.
    pub(crate) fn check_launch(&self, seed: u64, number: u64) -> LaunchResult {
        let drawn = self.draw_launch(seed, number);
        let ends = [0, 1].map(|side| self.run_side(&drawn, side, self.device_for(&drawn, side), None));
        let [before, after] = match ends {
            [Ok(before), Ok(after)] => [before, after],
            [Err(what), _] | [_, Err(what)] => return LaunchResult::Unchecked(what),
        };
        match (&before, &after) {
            (Err(fault), _) | (_, Err(fault)) if fault.kind == FaultKind::BudgetExhausted => LaunchResult::Unfinished,
            (Err(fault), _) | (_, Err(fault)) if is_unknown(&fault.kind) => {
                LaunchResult::Unchecked(unknown_name(&fault.kind))
            }
            (Ok(_), Ok(_)) if self.differing_word().is_none() => LaunchResult::Equal,
            (Err(one), Err(other)) if std::mem::discriminant(&one.kind) == std::mem::discriminant(&other.kind) => {
                LaunchResult::Equal
            }
            _ if self.has_meeting_stores(&drawn) => LaunchResult::Meeting,
            (Ok(_), Ok(_)) if self.depends_on_order(&drawn) => LaunchResult::Unordered,
            (Ok(_), Ok(_)) => LaunchResult::Different(Box::new(self.differing_store(&drawn))),
            _ => LaunchResult::Different(Box::new(self.differing_end(&drawn, &before, &after))),
        }
    }

    fn draw_launch(&self, seed: u64, number: u64) -> DrawnLaunch {
        let mut random = Random::new(mix_seed(seed, number));
        let theme = THEMES[number as usize % THEMES.len()];
        // Code for many work-items is reached by nothing less, and by numbers of that size.
        let wide = number % 4 == 2;
        let LaunchSizes { workgroup, grid } = self.draw_sizes(&mut random, wide);
        let mut buffers = 0;
        let explicit = self.kernels[0].arguments.iter().filter(|argument| !argument.value_kind.starts_with("hidden_"));
        let arguments = explicit.map(|argument| match &*argument.value_kind {
            "global_buffer" => {
                buffers += 1;
                (BUFFERS + BUFFER * buffers).to_le_bytes()[..(argument.size as usize).min(8)].to_vec()
            }
            "dynamic_shared_pointer" => vec![0; argument.size as usize],
            _ => by_value(&mut random, argument.size as usize, wide),
        });
        let arguments = arguments.collect();
        let drawn = [random.below(4), random.below(4), random.below(2)].map(u64::from);
        let modes = if self.plain_modes { [0, 3, drawn[2]] } else { drawn };
        let modes = (number % 4 == 3).then_some(modes);
        DrawnLaunch { grid, workgroup, arguments, theme, seed: mix_seed(seed, number), late: number % 2 == 1, modes }
    }

    fn device_for(&self, drawn: &DrawnLaunch, side: usize) -> &EmulatedDevice {
        let object = self.objects[side];
        if drawn.late { &object.late_device } else { &object.device }
    }

    /// Whether lanes of the original, which has just been executed, have met.
    fn has_meeting_stores(&self, drawn: &DrawnLaunch) -> bool {
        self.device_for(drawn, 0).meeting_stores.as_ref().is_some_and(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Whether the original, which has just been executed, writes something else if its waves take turns after each
    /// instruction. Then it has a race, or waits for another wave, and neither order is the right one.
    fn depends_on_order(&self, drawn: &DrawnLaunch) -> bool {
        let memory = self.memories[0];
        let before = memory.written_words();
        let end = self.run_side(drawn, 0, &self.objects[0].other_order, None);
        let is_unordered = matches!(end, Ok(Ok(_))) && memory.written_words() != before;
        // Those who ask for the first difference find the memory as it was.
        let _ = self.run_side(drawn, 0, self.device_for(drawn, 0), None);
        is_unordered
    }

    fn draw_sizes(&self, random: &mut Random, wide: bool) -> LaunchSizes {
        let largest = self.largest.max(1);
        if let Some(lanes) = self.full_wave {
            let workgroup = random.choose_from(&[lanes, lanes, 2 * lanes]).min(largest);
            return LaunchSizes { workgroup, grid: random.choose_from(&[1, 1, 2]) * workgroup };
        }
        if wide {
            let workgroup = largest.min(WIDE);
            return LaunchSizes { workgroup, grid: random.choose_from(&[1, 2]) * workgroup };
        }
        let workgroup = random.choose_from(&[32, 64, 33, 1, 96]).min(largest);
        let grids = [workgroup, workgroup, 2 * workgroup, workgroup + 1, workgroup.div_ceil(2)];
        LaunchSizes { workgroup, grid: random.choose_from(&grids) }
    }

    /// Executes one side; the launch ends at the write that `watch` names.
    fn run_side(
        &self,
        drawn: &DrawnLaunch,
        side: usize,
        device: &EmulatedDevice,
        watch: Option<WatchedWrite>,
    ) -> Result<LaunchEnd, String> {
        let (memory, kernel) = (self.memories[side], self.kernels[side]);
        device.meeting_stores.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        memory.reset(drawn.seed, drawn.theme);
        let workgroup = [drawn.workgroup as u16, 1, 1];
        let request =
            DirectLaunch { grid: [drawn.grid, 1, 1], workgroup, arguments: &drawn.arguments, dynamic_lds: LDS };
        let arguments = argument_bytes(kernel, &request, QUEUE).map_err(|error| error.to_string())?;
        let packet = AqlDispatch {
            grid: request.grid,
            workgroup,
            private_segment_size: kernel.scratch as u32,
            group_segment_size: kernel.lds as u32 + LDS,
            kernel_object: kernel.kernel_object,
            kernarg_address: ARGUMENTS,
        };
        memory.preset_bytes(ARGUMENTS, &arguments);
        memory.preset_bytes(QUEUE, &queue_bytes());
        // The packet states sizes that may differ; what a kernel reads of it are the grid's.
        memory
            .preset_bytes(PACKET, &packet_bytes(&AqlDispatch { private_segment_size: 0, kernel_object: 0, ..packet }));
        self.set_modes(drawn, side);
        if let Some(write) = watch {
            memory.watch_write(write);
        }
        let dispatch = KernelDispatch { packet, packet_address: PACKET, queue_address: QUEUE, dispatch_id: 0 };
        Ok(run_dispatch(device, memory, &dispatch))
    }

    /// Changes the modes of floats in the kernel's descriptor.
    fn set_modes(&self, drawn: &DrawnLaunch, side: usize) {
        let (Some([rounding, denormals, overflow]), memory) = (drawn.modes, self.memories[side]) else { return };
        let address = self.kernels[side].kernel_object;
        let mut bytes = [0; field::SIZE];
        // Every address exists.
        let _ = memory.read(address, &mut bytes);
        let Some(mut descriptor) = KernelDescriptor::new(&mut bytes[..], self.objects[side].device.processor) else {
            return;
        };
        for (name, value) in [
            (field::ROUND_32, rounding),
            (field::DENORM_32, denormals),
            (field::DENORM_16_64, denormals),
            (field::FP16_OVERFLOW, overflow),
        ] {
            // A field that the family lacks stays away.
            let _ = descriptor.set_field(name, value);
        }
        memory.preset_bytes(address, &bytes);
    }

    /// The first word that is neither the same nor the address of the same code.
    fn differing_word(&self) -> Option<u64> {
        differing_words(self.memories).find(|address| !holds_code_address(address, self))
    }

    /// Where code of the first file is in the second one.
    fn new_address(&self, old: u64) -> Option<u64> {
        let CodeOffset { section, offset } = self.objects[0].code_offset(old)?;
        let map = self.maps.iter().find(|map| map.section.number as usize == section)?;
        Some(self.objects[1].memory_address(section, map.new_offset(offset)?))
    }

    fn describe_launch(drawn: &DrawnLaunch) -> String {
        let late = if drawn.late { ", results of memory operations late" } else { "" };
        let modes = drawn.modes.map_or_else(String::new, |[rounding, denormals, overflow]| {
            format!(", rounding {rounding}, denormals {denormals}, overflow {overflow}")
        });
        let arguments: Vec<String> = drawn.arguments.iter().map(|bytes| hexadecimal_number(bytes)).collect();
        format!(
            "grid {}, work-group {}, arguments 0x{}, seed {:#x}{late}{modes}",
            drawn.grid,
            drawn.workgroup,
            arguments.join(" 0x"),
            drawn.seed
        )
    }

    fn differing_end(&self, drawn: &DrawnLaunch, before: &LaunchEnd, after: &LaunchEnd) -> Difference {
        let text =
            |end: &LaunchEnd| end.as_ref().err().map_or_else(|| "ends".to_owned(), |fault| fault.kind.to_string());
        let places = [fault_code_location(0, before, self), fault_code_location(1, after, self)];
        let what = format!("before: {}; after: {}", text(before), text(after));
        Difference { places, what, state: Self::describe_launch(drawn), ..Difference::default() }
    }

    /// The store that wrote something else: the last one to the first word that differs.
    fn differing_store(&self, drawn: &DrawnLaunch) -> Difference {
        let Some(address) = self.differing_word() else { return Difference::default() };
        let end = [0, 1].map(|side| self.memories[side].word(address));
        let mut lanes = [None, None];
        let places = [0, 1].map(|side| {
            // A launch that cannot be repeated does not have a place.
            let device = self.device_for(drawn, side);
            let _ = self.run_side(drawn, side, device, Some(WatchedWrite { address, number: 0 }));
            let last = WatchedWrite { address, number: self.memories[side].watched_writes() };
            let fault = self.run_side(drawn, side, device, Some(last)).ok().and_then(Result::err);
            lanes[side] = fault.as_ref().and_then(|fault| fault.place.lane);
            fault.map_or_else(Default::default, |fault| self.objects[side].code_place(fault.place.pc))
        });
        self.memories[0].reset(drawn.seed, drawn.theme);
        let start = self.memories[0].word(address);
        let what = format!(
            "memory at {address:#x} is {:#x} before{} and {:#x} after{}",
            end[0],
            storing_lane_suffix(0, &lanes),
            end[1],
            storing_lane_suffix(1, &lanes)
        );
        let values = vec![DifferingValue { name: format!("{address:#x}"), start, end }];
        Difference { places, what, state: Self::describe_launch(drawn), values, ..Difference::default() }
    }
}

/// The digits of a little-endian number.
fn hexadecimal_number(bytes: &[u8]) -> String {
    bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}

fn holds_code_address(address: &u64, pair: &KernelPair<'_>) -> bool {
    let [old, new] = pair.memories.map(|memory| memory.word(*address));
    pair.new_address(old).is_some_and(|expected| expected == new)
}

/// A launch that ends has no place.
fn fault_code_location(side: usize, end: &LaunchEnd, pair: &KernelPair<'_>) -> crate::CodePlace {
    end.as_ref().err().map(|fault| pair.objects[side].code_place(fault.place.pc)).unwrap_or_default()
}

fn storing_lane_suffix(side: usize, lanes: &[Option<u32>; 2]) -> String {
    lanes[side].map_or_else(String::new, |lane: u32| format!(", stored by lane {lane}"))
}

/// An argument that is passed by value: small numbers mostly, since kernels count with them.
fn by_value(random: &mut Random, size: usize, wide: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let small = if wide {
            random.choose_from(&[255, 256, 257, 1000])
        } else {
            random.choose_from(&[0, 1, 2, 3, 7, 8, 31, 32, 33, 64])
        };
        let word = match random.below(6) {
            0 => random.draw_word(NumberTheme::Special),
            1 => random.choose_from(&[0x3f80_0000, 0xbf00_0000, 0x7f80_0000, 0x7fc0_0000]),
            _ => small,
        };
        bytes.extend(word.to_le_bytes());
        if size == 8 {
            bytes.extend([0; 4]);
        }
    }
    bytes.truncate(size);
    bytes
}
