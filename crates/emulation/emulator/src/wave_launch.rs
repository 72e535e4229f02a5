//! From a dispatch to waves: the kernel descriptor, and the registers that a kernel finds.
//!
//! Source: "Initial Kernel Execution State" of LLVM's AMDGPU usage guide.

use crate::device::{EmulatedDevice, POISON_WORD, PRIVATE_APERTURE, SHARED_APERTURE};
use crate::dispatch::KernelDispatch;
use crate::execute::buffer::SCRATCH_WINDOW;
use crate::fault::{ExecutionFault, FaultKind, FaultPlace};
use crate::group::{GroupBarrier, Workgroup};
use crate::late::LateResults;
use crate::memory::DeviceMemory;
use crate::registers::{EXEC, FLAT_SCRATCH, SCALAR_SLOTS, TTMP, VectorLimits, initial_file};
use crate::wave::{WaveState, WaveStatus};
use hotswap_code_object::kernel_descriptor::{self as field, DescriptorField, KernelDescriptor};
use hotswap_isa::{Feature, Isa, Wave};
use hotswap_semantics::{FloatMode, LANES};
use hotswap_targets::IsaFamily;

/// Bit of the third word of the scratch descriptor: the lane's number is part of the address.
const ADD_LANE: u32 = 1 << 23;

/// Bytes of scratch of a lane at most: 64 MiB of a wave of 32 lanes (gfx12).
const LARGEST_SCRATCH: u32 = 2 << 20;

/// Everything that waves of a dispatch have in common.
pub(crate) struct WaveTemplate<'a> {
    pub(crate) isa: Isa,
    dispatch: &'a KernelDispatch,
    memory: &'a dyn DeviceMemory,
    descriptor: KernelDescriptor<[u8; field::SIZE]>,
    family: IsaFamily,
    /// Lanes of a wave.
    lanes: usize,
    entry: u64,
    pub(crate) limits: VectorLimits,
    mode: u32,
    /// Results of memory operations are late.
    late: bool,
    poison: bool,
    /// Lanes that store to one place are counted.
    watches_stores: bool,
    user_values: Vec<u32>,
}

fn refused_dispatch(reason: &str) -> ExecutionFault {
    ExecutionFault { kind: FaultKind::Dispatch { reason: reason.to_owned() }, place: FaultPlace::default() }
}

impl<'a> WaveTemplate<'a> {
    pub(crate) fn new(
        device: &EmulatedDevice,
        memory: &'a dyn DeviceMemory,
        dispatch: &'a KernelDispatch,
    ) -> Result<Self, ExecutionFault> {
        let packet = &dispatch.packet;
        let mut bytes = [0; field::SIZE];
        memory
            .read(packet.kernel_object, &mut bytes)
            .map_err(|_| refused_dispatch("the kernel object is not in memory"))?;
        let descriptor =
            KernelDescriptor::new(bytes, device.processor).ok_or_else(|| refused_dispatch("no descriptor"))?;
        let lanes = descriptor.wave_size() as usize;
        if !device.processor.waves.contains(lanes as u64) {
            return Err(refused_dispatch("the kernel's wave size is not one of the processor's"));
        }
        let items = packet.workgroup.map(u32::from).iter().product::<u32>();
        if packet.grid.contains(&0) || items == 0 || items > 1024 {
            return Err(refused_dispatch("the size of the grid or of the work-group is not valid"));
        }
        if packet.group_segment_size > device.processor.limits.lds.addressable {
            return Err(refused_dispatch("a work-group has more LDS than the processor"));
        }
        if packet.private_segment_size > LARGEST_SCRATCH {
            return Err(refused_dispatch("a lane has more scratch than any processor gives it"));
        }
        let wave = if lanes == 32 { Wave::W32 } else { Wave::W64 };
        let entry = packet.kernel_object.wrapping_add(descriptor.get(field::ENTRY).unwrap_or(0));
        let limits = vector_limits(&descriptor, device.isa());
        let family = device.processor.family;
        let isa = device.isa().with_wave(wave);
        let mode = initial_mode(&descriptor);
        let watches_stores = device.meeting_stores.is_some();
        let mut template = Self {
            isa,
            dispatch,
            memory,
            descriptor,
            family,
            lanes,
            entry,
            limits,
            mode,
            late: device.late_completion,
            poison: device.poison,
            watches_stores,
            user_values: Vec::new(),
        };
        template.user_values = template.user_values();
        Ok(template)
    }

    fn is_set(&self, name: &DescriptorField) -> bool {
        self.descriptor.get(name).is_some_and(|value| value != 0)
    }

    /// A work-group with its waves.
    pub(crate) fn build_workgroup(&self, number: [u32; 3]) -> Workgroup {
        let packet = &self.dispatch.packet;
        // The last work-group of a dimension may be smaller.
        let size: [u32; 3] = std::array::from_fn(|dimension| {
            let full = u32::from(packet.workgroup[dimension]);
            full.min(packet.grid[dimension] - number[dimension] * full)
        });
        let items = size.iter().product::<u32>() as usize;
        let waves: Vec<WaveState> =
            (0..items.div_ceil(self.lanes)).map(|wave| self.build_wave(number, size, wave, items)).collect();
        let barrier = GroupBarrier::new(waves.len() as u32);
        let lds = self.first_bytes((packet.group_segment_size as usize).next_multiple_of(512));
        Workgroup { number, waves, lds, barrier }
    }

    fn build_wave(&self, group: [u32; 3], size: [u32; 3], wave: usize, items: usize) -> WaveState {
        let halves = self.lanes / LANES;
        let scratch_size = self.scratch_size();
        let mut state = WaveState {
            pc: self.entry,
            scalars: initial_file(SHARED_APERTURE, PRIVATE_APERTURE),
            vectors: vec![[self.first_word(); LANES]; usize::from(self.limits.total_registers()) * halves],
            halves,
            vector_count: self.limits.vectors,
            scc: false,
            mode: 0,
            banks: 0,
            float_mode: FloatMode::PLAIN,
            fixed_modes: self.isa.has(Feature::Gfx12Insts),
            scratch: self.first_bytes(scratch_size as usize * self.lanes),
            scratch_size,
            undetermined: 0,
            executed: 0,
            status: WaveStatus::Runs,
            signalled: None,
            late: self.late.then(|| LateResults::new(self.isa)),
            store_watch: self.watches_stores.then(Box::default),
            global_phase: None,
            cluster_waits: 0,
            lane_shift: self.isa.has(Feature::Gfx1250Insts).then_some(if halves == 1 { 52 } else { 51 }),
        };
        state.set_mode(self.mode);
        let active = items - wave * self.lanes;
        let exec = if active >= 64 { u64::MAX } else { (1 << active) - 1 };
        state.set_pair(EXEC, if halves == 1 { exec & 0xffff_ffff } else { exec });
        self.set_scalars(&mut state, group, wave as u32);
        self.set_work_items(&mut state, size, wave);
        state
    }

    /// Bytes of scratch of a lane: those of the packet, whatever the descriptor states. The runtime that writes the packet decides
    /// how much a kernel with a dynamic stack gets.
    fn scratch_size(&self) -> u32 {
        self.dispatch.packet.private_segment_size.next_multiple_of(16)
    }

    /// The value of words of which the ABI states nothing.
    fn first_word(&self) -> u32 {
        if self.poison { POISON_WORD } else { 0 }
    }

    fn first_bytes(&self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        if self.poison {
            bytes.chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&POISON_WORD.to_le_bytes()));
        }
        bytes
    }

    fn set_scalars(&self, state: &mut WaveState, group: [u32; 3], wave: u32) {
        let user = self.user_values.len();
        // SGPRs and VCC.
        state.scalars[..usize::from(TTMP)].fill(self.first_word());
        state.scalars[..user].copy_from_slice(&self.user_values);
        if self.isa.has(Feature::ArchitectedSgprs) {
            state.scalars[usize::from(TTMP) + 9] = group[0];
            state.scalars[usize::from(TTMP) + 7] = group[1] & 0xffff | group[2] << 16;
            state.scalars[usize::from(TTMP) + 8] = (wave & 31) << 25;
        } else {
            for (slot, value) in state.scalars[user..].iter_mut().zip(self.system_values(group, wave)) {
                *slot = value;
            }
        }
        if self.family <= IsaFamily::Rdna2 {
            state.set_pair(FLAT_SCRATCH, SCRATCH_WINDOW);
        }
    }

    /// User SGPRs in the order of the ABI.
    fn user_values(&self) -> Vec<u32> {
        let mut values = Vec::new();
        let dispatch = self.dispatch;
        let [low, high] = dword_pair_of(SCRATCH_WINDOW);
        add_user_dwords(field::SCRATCH_BUFFER, &[low, high | 1 << 31, u32::MAX, ADD_LANE], self, &mut values);
        add_user_dwords(field::DISPATCH_PTR, &dword_pair_of(dispatch.packet_address), self, &mut values);
        add_user_dwords(field::QUEUE_PTR, &dword_pair_of(dispatch.queue_address), self, &mut values);
        add_user_dwords(field::KERNARG_PTR, &dword_pair_of(dispatch.packet.kernarg_address), self, &mut values);
        add_user_dwords(field::DISPATCH_ID, &dword_pair_of(dispatch.dispatch_id), self, &mut values);
        add_user_dwords(field::FLAT_SCRATCH, &dword_pair_of(SCRATCH_WINDOW), self, &mut values);
        add_user_dwords(field::SCRATCH_SIZE, &[self.scratch_size()], self, &mut values);
        values.extend(self.preloaded_arguments());
        let count = self.descriptor.get(field::USER_SGPRS).or_else(|| self.descriptor.get(field::USER_SGPRS_125));
        values.resize((count.unwrap_or(0) as usize).min(SCALAR_SLOTS), 0);
        values
    }

    /// Arguments that are in registers.
    fn preloaded_arguments(&self) -> Vec<u32> {
        let length = self.descriptor.get(field::PRELOAD_LENGTH).unwrap_or(0);
        let offset = self.descriptor.get(field::PRELOAD_OFFSET).unwrap_or(0);
        let words = (offset..offset + length).map(|number| {
            let mut bytes = [0; 4];
            // Bytes that are not there read as 0: the compiler asks for no more than the arguments.
            let _ = self.memory.read(self.dispatch.packet.kernarg_address + 4 * number, &mut bytes);
            u32::from_le_bytes(bytes)
        });
        words.collect()
    }

    fn system_values(&self, group: [u32; 3], wave: u32) -> Vec<u32> {
        let mut values = Vec::new();
        let names = [field::WORKGROUP_ID_X, field::WORKGROUP_ID_Y, field::WORKGROUP_ID_Z];
        values.extend(names.iter().zip(group).filter(|(name, _)| self.is_set(name)).map(|(_, id)| id));
        if self.is_set(field::WORKGROUP_INFO) {
            values.push(u32::from(wave == 0) << 31);
        }
        if self.is_set(field::ENABLE_SCRATCH) && !self.isa.has(Feature::ArchitectedFlatScratch) {
            // Offset of the wave's scratch: every wave has its own.
            values.push(0);
        }
        values
    }

    /// Numbers of the work-items in the first vector registers.
    fn set_work_items(&self, state: &mut WaveState, size: [u32; 3], wave: usize) {
        let dimensions = self.descriptor.get(field::WORKITEM_ID).unwrap_or(0) as u16 + 1;
        let first = (wave * self.lanes) as u32;
        let mut ids = [first % size[0], first / size[0] % size[1], first / (size[0] * size[1])];
        let is_packed = self.isa.has(Feature::PackedTid);
        // The numbers of a row follow each other, packed or not; beyond its end are lanes that are not active.
        let is_row = size[1] == 1 && size[2] == 1;
        for half in 0..state.halves {
            let mut blocks = [[0; LANES]; 3];
            if is_row {
                blocks[0] = std::array::from_fn(|lane| first + (LANES * half + lane) as u32);
            } else {
                for lane in 0..LANES {
                    let [x, y, z] = ids;
                    let values = if is_packed { [x | y << 10 | z << 20, 0, 0] } else { ids };
                    blocks.iter_mut().zip(values).for_each(|(block, value)| block[lane] = value);
                    ids = next_item(ids, size);
                }
            }
            let count = if is_packed { 1 } else { dimensions.min(state.vector_count).min(3) };
            for (register, block) in (0..count).zip(blocks) {
                *state.block_mut(register, half) = block;
            }
        }
    }
}

fn add_user_dwords(name: &DescriptorField, dwords: &[u32], template: &WaveTemplate<'_>, values: &mut Vec<u32>) {
    if template.is_set(name) {
        values.extend_from_slice(dwords);
    }
}

fn dword_pair_of(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// The work-item after another one.
fn next_item([x, y, z]: [u32; 3], size: [u32; 3]) -> [u32; 3] {
    match (x + 1 == size[0], y + 1 == size[1]) {
        (false, _) => [x + 1, y, z],
        (true, false) => [0, y + 1, z],
        (true, true) => [0, 0, z + 1],
    }
}

/// Vector registers of a wave. CDNA1 has a second file of the same size; later ones divide one file.
fn vector_limits(descriptor: &KernelDescriptor<[u8; field::SIZE]>, isa: Isa) -> VectorLimits {
    let total = descriptor.vector_registers().unwrap_or(256) as u16;
    match descriptor.get(field::ACCUM_OFFSET) {
        Some(offset) => {
            let vectors = (offset as u16 + 1) * 4;
            VectorLimits { vectors: vectors.min(total), accumulators: total.saturating_sub(vectors) }
        }
        None if isa.has(Feature::MaiInsts) => VectorLimits { vectors: total, accumulators: total },
        None => VectorLimits { vectors: total, accumulators: 0 },
    }
}

/// MODE at the start.
fn initial_mode(descriptor: &KernelDescriptor<[u8; field::SIZE]>) -> u32 {
    let parts = [
        (field::ROUND_32, 0),
        (field::ROUND_16_64, 2),
        (field::DENORM_32, 4),
        (field::DENORM_16_64, 6),
        (field::DX10_CLAMP, 8),
        (field::IEEE_MODE, 9),
        (field::FP16_OVERFLOW, 23),
    ];
    parts.iter().fold(0, |mode, (name, bit)| mode | (descriptor.get(name).unwrap_or(0) as u32) << bit)
}
