//! Accesses through buffer resources: kernels assembled by LLVM, random resources of all fields and range checks, and a model that
//! follows the ISA documents.
//!
//! Invariants: the model writes a resource's fields, the emulator reads them; the model looks at single bytes, the emulator at
//! words. An access that is out of range has effects nowhere: all memory around the buffer is compared.

use hotswap_emulator::{
    DeviceMemory, DirectLaunch, EmulatedDevice, LoadedObject, SparseMemory, launch_kernel, read_back,
};
use hotswap_userland::{Workbench, say};
use std::fmt::Write;

/// Bytes of the memory in which all buffers lie.
const ARENA: usize = 640 << 10;
const BUFFER_AT: usize = 1 << 16;
const LANES: usize = 32;
const CASES: usize = 60;

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Generation {
    Gfx9,
    Gfx10,
    Gfx11,
    Gfx12,
    Gfx125,
}

const GPUS: [(&str, Generation); 8] = [
    ("gfx900", Generation::Gfx9),
    ("gfx90a", Generation::Gfx9),
    ("gfx942", Generation::Gfx9),
    ("gfx950", Generation::Gfx9),
    ("gfx1030", Generation::Gfx10),
    ("gfx1100", Generation::Gfx11),
    ("gfx1201", Generation::Gfx12),
    ("gfx1250", Generation::Gfx125),
];

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Load,
    Store,
    /// Adds, and returns the old value.
    Add,
    /// A scalar load.
    Scalar,
}

/// An instruction in the words of gfx9 and gfx10, and of later targets.
#[derive(Clone, Copy)]
struct Instruction {
    access: Access,
    names: [&'static str; 2],
    bytes: usize,
}

const INSTRUCTIONS: [Instruction; 11] = [
    instruction(Access::Load, ["buffer_load_ubyte", "buffer_load_u8"], 1),
    instruction(Access::Load, ["buffer_load_ushort", "buffer_load_u16"], 2),
    instruction(Access::Load, ["buffer_load_dword", "buffer_load_b32"], 4),
    instruction(Access::Load, ["buffer_load_dwordx3", "buffer_load_b96"], 12),
    instruction(Access::Load, ["buffer_load_dwordx4", "buffer_load_b128"], 16),
    instruction(Access::Store, ["buffer_store_short", "buffer_store_b16"], 2),
    instruction(Access::Store, ["buffer_store_dwordx2", "buffer_store_b64"], 8),
    instruction(Access::Store, ["buffer_store_dwordx4", "buffer_store_b128"], 16),
    instruction(Access::Add, ["buffer_atomic_add", "buffer_atomic_add_u32"], 4),
    instruction(Access::Add, ["buffer_atomic_add_x2", "buffer_atomic_add_u64"], 8),
    instruction(Access::Scalar, ["s_buffer_load_dwordx4", "s_buffer_load_b128"], 16),
];

const fn instruction(access: Access, names: [&'static str; 2], bytes: usize) -> Instruction {
    Instruction { access, names, bytes }
}

/// Parts of the address that come from vector registers.
#[derive(Clone, Copy)]
struct AddressForm {
    has_index: bool,
    has_offset: bool,
    immediate: u32,
}

const FORMS: [AddressForm; 4] = [
    AddressForm { has_index: false, has_offset: false, immediate: 20 },
    AddressForm { has_index: false, has_offset: true, immediate: 0 },
    AddressForm { has_index: true, has_offset: false, immediate: 8 },
    AddressForm { has_index: true, has_offset: true, immediate: 4 },
];

/// The fields of a resource.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    base: u64,
    stride: u32,
    records: u64,
    oob_select: u32,
    adds_lane: bool,
    /// 0 none, 1 elements of 4 bytes, 3 of 16.
    swizzle: u32,
    /// The records that are interleaved; on gfx12.5 the scale of the stride is there.
    index_stride: u32,
    scalar_offset: u32,
    /// On gfx9 the upper bits of the stride, where the number of the lane is added.
    data_format: u32,
}

impl Fields {
    fn dwords(&self, generation: Generation) -> [u32; 4] {
        let (low, high) = (self.base as u32, (self.base >> 32) as u32);
        if generation == Generation::Gfx125 {
            let second = high & 0x1ff_ffff | (self.records as u32 & 127) << 25;
            let flags =
                (self.records >> 39) as u32 | self.stride << 12 | self.index_stride << 26 | (self.oob_select & 1) << 29;
            return [low, second, (self.records >> 7) as u32, flags];
        }
        let swizzle = match generation {
            Generation::Gfx9 | Generation::Gfx10 => u32::from(self.swizzle != 0) << 31,
            _ => self.swizzle << 30,
        };
        let flags =
            self.data_format << 15 | self.index_stride << 21 | u32::from(self.adds_lane) << 23 | self.oob_select << 28;
        [low, high & 0xffff | self.stride << 16 | swizzle, self.records as u32, flags]
    }
}

/// The registers of a lane before the access.
#[derive(Clone, Copy)]
struct LaneRegisters {
    index: u32,
    offset: u32,
    data: [u32; 4],
}

fn wait_lines(generation: Generation) -> &'static str {
    match generation {
        Generation::Gfx12 => "s_wait_loadcnt 0\ns_wait_kmcnt 0\ns_wait_storecnt 0",
        Generation::Gfx125 => "s_wait_loadcnt 0\ns_wait_kmcnt 0\ns_wait_storecnt 0",
        Generation::Gfx10 => "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt_vscnt null, 0x0",
        _ => "s_waitcnt vmcnt(0) lgkmcnt(0)",
    }
}

fn access_line(instruction: &Instruction, form: &AddressForm, generation: Generation) -> String {
    let name = instruction.names[usize::from(generation >= Generation::Gfx11)];
    if instruction.access == Access::Scalar {
        let moves: String = (0..4).map(|word| format!("v_mov_b32 v{}, s{}\n", 4 + word, 20 + word)).collect();
        return format!("{name} s[20:23], s[8:11], s12\n{}\n{moves}", wait_lines(generation));
    }
    let address = match (form.has_index, form.has_offset) {
        (true, true) => "v[2:3]",
        (true, false) => "v2",
        (false, true) => "v3",
        (false, false) => "off",
    };
    let data = match instruction.bytes.div_ceil(4) {
        1 => "v4".to_owned(),
        words => format!("v[4:{}]", 3 + words),
    };
    let mut line = format!("{name} {data}, {address}, s[8:11], s12");
    line += if form.has_index { " idxen" } else { "" };
    line += if form.has_offset { " offen" } else { "" };
    if form.immediate != 0 {
        let _ = write!(line, " offset:{}", form.immediate);
    }
    if instruction.access == Access::Add {
        line += match generation {
            Generation::Gfx9 | Generation::Gfx10 | Generation::Gfx11 => " glc",
            Generation::Gfx12 | Generation::Gfx125 => " th:TH_ATOMIC_RETURN",
        };
    }
    line
}

/// Loads the resource into s[8:11], the scalar offset into s12, index, offset and data of each lane into v2 to v7; the words of
/// v4 to v7 after the access are the result.
fn kernel(number: usize, gpu: &str, line: &str, generation: Generation) -> String {
    let is_new = generation >= Generation::Gfx11;
    let (four, two, word) = if is_new { ("b128", "b64", "b32") } else { ("dwordx4", "dwordx2", "dword") };
    let wait = wait_lines(generation);
    // gfx942's name of the bit that asks for the old value.
    let line = if matches!(gpu, "gfx942" | "gfx950") { line.replace(" glc", " sc0") } else { line.to_owned() };
    let lanes: String =
        (0..6).map(|n| format!("global_load_{word} v{}, v10, s[4:5] offset:{}\n", n + 2, 4 * n)).collect();
    let results: String =
        (0..4).map(|n| format!("global_store_{word} v11, v{}, s[6:7] offset:{}\n", n + 4, 4 * n)).collect();
    let own = match gpu {
        "gfx900" => ".amdhsa_next_free_vgpr 16",
        "gfx90a" | "gfx942" | "gfx950" => ".amdhsa_next_free_vgpr 24\n.amdhsa_accum_offset 16",
        _ => ".amdhsa_next_free_vgpr 16\n.amdhsa_wavefront_size32 1",
    };
    format!(
        ".text\n.globl k{number}\n.p2align 8\n.type k{number},@function\nk{number}:
s_load_{four} s[4:7], s[0:1], 0x0\ns_load_{two} s[16:17], s[0:1], 0x10
v_and_b32 v0, 0x3ff, v0\nv_mul_u32_u24 v10, 24, v0\nv_lshlrev_b32 v11, 4, v0\n{wait}
s_load_{four} s[8:11], s[16:17], 0x0\ns_load_{word} s12, s[16:17], 0x10\n{lanes}{wait}
{line}\n{wait}\n{results}s_endpgm
.rodata\n.p2align 6\n.amdhsa_kernel k{number}\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n{own}\n.amdhsa_next_free_sgpr 32\n.end_amdhsa_kernel\n"
    )
}

fn metadata(count: usize, lanes: u32) -> String {
    let mut text = ".amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.kernels:\n".to_owned();
    for number in 0..count {
        let _ = write!(
            text,
            "  - .name: k{number}\n    .symbol: k{number}.kd\n    .kernarg_segment_size: 24\n    .kernarg_segment_align: 8\n    \
             .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: {lanes}\n    .sgpr_count: 32\n    \
             .vgpr_count: 16\n    .max_flat_workgroup_size: 1024\n    .args:\n"
        );
        for argument in 0..3 {
            let _ = writeln!(text, "      - {{ .offset: {}, .size: 8, .value_kind: global_buffer }}", 8 * argument);
        }
    }
    text + ".end_amdgpu_metadata\n"
}

/// Offset from the base of the byte `number` of a lane's access, and whether the element with `size` bytes that begins there is in
/// range. All numbers are mathematical integers, but for the sum that wraps at 32 bits.
struct ModelAddress {
    from_base: i128,
    in_range: bool,
}

fn model(
    fields: &Fields,
    form: &AddressForm,
    lane: usize,
    registers: &LaneRegisters,
    generation: Generation,
    element: (usize, usize),
) -> ModelAddress {
    let (number, size) = (element.0 as i128, element.1 as i128);
    let given_index = if form.has_index { i128::from(registers.index) } else { 0 };
    let vector = if form.has_offset { i128::from(registers.offset) } else { 0 };
    let mut offset = vector + i128::from(form.immediate);
    if generation != Generation::Gfx125 {
        offset %= 1 << 32;
    }
    offset += number;
    let (records, scalar) = (i128::from(fields.records), i128::from(fields.scalar_offset));
    let gfx9 = generation == Generation::Gfx9;
    let swizzle = match (fields.swizzle, gfx9) {
        (0, _) => 0,
        (_, true) if !fields.adds_lane => 0,
        (_, false) if !fields.adds_lane && !form.has_index => 0,
        (3, false) if generation >= Generation::Gfx11 => 16,
        _ => 4,
    };
    // gfx9 keeps the number of the lane out of linear buffers with an index; others use it in place of an index only.
    let adds = fields.adds_lane && if gfx9 { !form.has_index || fields.swizzle != 0 } else { !form.has_index };
    let index = given_index + if adds { lane as i128 } else { 0 };
    let scale = if generation == Generation::Gfx125 { [1, 4, 8, 32][fields.index_stride as usize] } else { 1 };
    let stride = i128::from(fields.stride) * scale;
    let stride = if gfx9 && adds { stride + (i128::from(fields.data_format) << 14) } else { stride };
    let linear = index * stride + offset;
    let placed = if swizzle == 0 {
        linear
    } else {
        let group = 8 << fields.index_stride;
        // All elements of a group's records with one number follow each other.
        let (row, column) = (index / group, index % group);
        let (whole, part) = (offset / swizzle, offset % swizzle);
        (row * stride + whole * swizzle) * group + column * swizzle + part
    };
    let in_record = offset + size <= stride;
    let in_bytes = offset + scalar + size <= records;
    let in_range = match (generation, fields.oob_select) {
        (Generation::Gfx125, 0) => linear + scalar + size <= records,
        (Generation::Gfx125, _) => linear + scalar + size <= records && offset + scalar + size <= stride,
        (Generation::Gfx9, _) if fields.adds_lane && !form.has_index => true,
        (Generation::Gfx9, _) if form.has_index && fields.stride > 0 => index < records,
        (Generation::Gfx9, _) => in_bytes,
        (Generation::Gfx10, 0) => index < records && offset < stride,
        (_, 0) => index < records && in_record,
        (_, 1) => index < records,
        (_, 2) => records > 0,
        (Generation::Gfx10, _) if swizzle != 0 => placed + scalar + size <= records,
        (_, _) if swizzle != 0 && stride > 0 => index < records && in_record,
        _ => in_bytes,
    };
    ModelAddress { from_base: placed + scalar, in_range }
}

/// Memory and result after an access by the model; `None` where a byte in range is outside of the arena.
fn expected(
    instruction: &Instruction,
    form: &AddressForm,
    fields: &Fields,
    lanes: &[LaneRegisters],
    generation: Generation,
    before: &[u8],
) -> Option<(Vec<u8>, Vec<u32>)> {
    let (mut arena, mut results) = (before.to_vec(), Vec::new());
    for (lane, registers) in lanes.iter().enumerate() {
        let mut data: Vec<u8> = registers.data.iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = instruction.bytes;
        let element = if instruction.access == Access::Add { size } else { size.min(4) };
        let mut loaded = vec![0_u8; size];
        for first in (0..size).step_by(element) {
            let address = if instruction.access == Access::Scalar {
                let offset = i128::from(fields.scalar_offset & !3) + first as i128;
                let bytes = i128::from(fields.records) * i128::from(fields.stride.max(1));
                ModelAddress { from_base: offset, in_range: offset + element as i128 <= bytes }
            } else {
                model(fields, form, lane, registers, generation, (first, element))
            };
            if !address.in_range {
                continue;
            }
            let at = usize::try_from(address.from_base + BUFFER_AT as i128).ok()?;
            let place = arena.get_mut(at..at + element)?;
            match instruction.access {
                Access::Load | Access::Scalar => loaded[first..first + element].copy_from_slice(place),
                Access::Store => place.copy_from_slice(&data[first..first + element]),
                Access::Add => {
                    if at % element != 0 {
                        return None;
                    }
                    loaded.copy_from_slice(place);
                    let mut carry = 0;
                    for (byte, added) in place.iter_mut().zip(&data) {
                        let sum = u16::from(*byte) + u16::from(*added) + carry;
                        (*byte, carry) = (sum as u8, sum >> 8);
                    }
                }
            }
        }
        if instruction.access != Access::Store {
            loaded.resize(size.next_multiple_of(4), 0);
            data[..loaded.len()].copy_from_slice(&loaded);
        }
        results.extend(data.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
    }
    Some((arena, results))
}

/// Numbers that follow from a seed (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % limit
    }
}

fn random_fields(numbers: &mut Numbers, generation: Generation) -> Fields {
    let stride = [0, 4, 16, 20, 48][numbers.below(5) as usize];
    let small = [0, 3, 17, 64, 130, 400, 1021][numbers.below(7) as usize];
    let swizzle = match (numbers.below(3), generation) {
        (0, Generation::Gfx9 | Generation::Gfx10) => 1,
        (0, Generation::Gfx11 | Generation::Gfx12) => [1, 3][numbers.below(2) as usize],
        _ => 0,
    };
    Fields {
        base: 0,
        stride,
        records: small,
        // Bits 28 and 29 are the lowest of the user's on gfx9.
        oob_select: numbers.below(4) & if generation == Generation::Gfx125 { 1 } else { 3 },
        adds_lane: numbers.below(4) == 0 && generation != Generation::Gfx125,
        swizzle,
        index_stride: numbers.below(4),
        scalar_offset: [0, 0, 4, 64, 6][numbers.below(5) as usize],
        data_format: if generation == Generation::Gfx125 { 0 } else { [0, 0, 1, 4][numbers.below(4) as usize] },
    }
}

fn random_lanes(numbers: &mut Numbers, step: u32) -> Vec<LaneRegisters> {
    let lane = |numbers: &mut Numbers| LaneRegisters {
        index: numbers.below(24),
        // An offset that is below 0 as a signed number: with a small number of the instruction it wraps.
        offset: if numbers.below(12) == 0 { 0u32.wrapping_sub(4) } else { numbers.below(100) * step },
        data: [(); 4].map(|()| numbers.below(u32::MAX)),
    };
    (0..LANES).map(|_| lane(numbers)).collect()
}

/// The memory of a GPU's exam.
struct Exam {
    device: EmulatedDevice,
    object: Vec<u8>,
    before: Vec<u8>,
}

impl Exam {
    /// The memory and the results after a launch, or the error.
    fn launch(
        &self,
        number: usize,
        fields: &Fields,
        lanes: &[LaneRegisters],
        generation: Generation,
    ) -> Result<(Vec<u8>, Vec<u32>), String> {
        let mut memory = SparseMemory::new();
        let loaded = LoadedObject::load(&self.object, &mut memory).map_err(|error| error.to_string())?;
        let arena = memory.allocate_copy(&self.before);
        let fields = Fields { base: arena + BUFFER_AT as u64, ..*fields };
        let mut resource = fields.dwords(generation).to_vec();
        resource.push(fields.scalar_offset);
        let input: Vec<u32> =
            lanes.iter().flat_map(|lane| [&[lane.index, lane.offset], &lane.data[..]].concat()).collect();
        let (resource, input) = (memory.allocate_copy(&bytes_of(&resource)), memory.allocate_copy(&bytes_of(&input)));
        let output = memory.allocate(16 * LANES as u64);
        let arguments = [input, output, resource].map(|address| address.to_le_bytes().to_vec());

        let request = DirectLaunch {
            grid: [LANES as u32, 1, 1],
            workgroup: [LANES as u16, 1, 1],
            arguments: &arguments,
            dynamic_lds: 0,
        };
        let kernel = loaded.find_kernel(&format!("k{number}")).ok_or("no kernel")?;
        launch_kernel(&self.device, &mut memory, kernel, &request).map_err(|error| error.to_string())?;
        let mut after = vec![0; ARENA];
        memory.read(arena, &mut after).map_err(|fault| format!("{fault:?}"))?;
        let results = read_back(&memory, output, 16 * LANES);
        let words = results.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        Ok((after, words.collect()))
    }
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn assembled(bench: &Workbench, gpu: &str, generation: Generation) -> Vec<u8> {
    let pairs = INSTRUCTIONS.iter().flat_map(|instruction| FORMS.iter().map(move |form| (instruction, form)));
    let mut text: String = pairs
        .enumerate()
        .map(|(number, (instruction, form))| {
            kernel(number, gpu, &access_line(instruction, form, generation), generation)
        })
        .collect();
    let is_wide = generation == Generation::Gfx9;
    text += &metadata(INSTRUCTIONS.len() * FORMS.len(), if is_wide { 64 } else { 32 });
    let version = bench.versions[0];
    let lanes = if is_wide { "" } else { " -mattr=+wavefrontsize32" };
    bench.assemble(version, &format!("-mcpu={gpu}{lanes}"), "buffers", &text);
    bench.link(version, "", "buffers")
}

/// Runs the cases of a GPU; returns how many ran and what differs.
fn examine(bench: &Workbench, gpu: &str, generation: Generation) -> (usize, Vec<String>) {
    let device = EmulatedDevice::new(gpu).unwrap_or_else(|error| panic!("{error}"));
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let before: Vec<u8> = (0..ARENA).map(|_| numbers.below(256) as u8).collect();
    let exam = Exam { device, object: assembled(bench, gpu, generation), before };
    let (mut ran, mut wrong) = (0, Vec::new());
    for case in 0..CASES * INSTRUCTIONS.len() * FORMS.len() {
        let number = case % (INSTRUCTIONS.len() * FORMS.len());
        let (instruction, form) = (&INSTRUCTIONS[number / FORMS.len()], &FORMS[number % FORMS.len()]);
        let fields = random_fields(&mut numbers, generation);
        let lanes = random_lanes(&mut numbers, if instruction.access == Access::Add { 8 } else { 2 });
        let Some(model) = expected(instruction, form, &fields, &lanes, generation, &exam.before) else { continue };
        ran += 1;
        let line = access_line(instruction, form, generation);
        match exam.launch(number, &fields, &lanes, generation) {
            Ok(found) if found == model => {}
            Ok((arena, results)) => {
                let lane = results.iter().zip(&model.1).position(|(found, wanted)| found != wanted).map(|at| at / 4);
                let byte = arena.iter().zip(&model.0).position(|(found, wanted)| found != wanted);
                wrong.push(format!("{gpu}: {line} with {fields:x?}: first lane {lane:?}, first byte {byte:?}"));
            }
            Err(error) => wrong.push(format!("{gpu}: {line} with {fields:x?}: {error}")),
        }
    }
    (ran, wrong)
}

#[test]
fn accesses_through_buffer_resources_follow_the_isa_documents() {
    let Some(bench) = Workbench::new("buffers") else { return };
    let (mut ran, mut wrong) = (0, Vec::new());
    for (gpu, generation) in GPUS {
        let (cases, failures) = examine(&bench, gpu, generation);
        assert!(cases > CASES * INSTRUCTIONS.len() * FORMS.len() / 2, "{gpu}: only {cases} cases stay in the memory");
        ran += cases;
        wrong.extend(failures);
    }
    say(&format!("buffer resources: {ran} launches"));
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}
