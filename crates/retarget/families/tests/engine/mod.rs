//! The smallest engine that can run the families on a piece of code: one function, straight lines and branches, free
//! registers as the case states. It checks nothing; the result is for LLVM and the reader.

use hotswap_families::code::{
    CodeSite, FlowBlock, FunctionCode, FunctionFlow, Insertion, Replacement, Scheduling, SiteAnswer, SiteQueries,
    SiteRefusal,
};
use hotswap_families::{FamilyAnswer, FamilyRefusal, FamilyRegistry, FamilyRewriter};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::{ControlFlow as Next, WaitCounter};
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa, Name, Target};
use hotswap_program::ReachingDefs;

/// The surroundings that a case declares.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// Registers that are free everywhere.
    pub(crate) free: Vec<Reg>,
    /// Registers that are read after the end.
    pub(crate) live: RegSet,
    pub(crate) scheduling: Scheduling,
    /// Why MODE differs for 16-bit floats.
    pub(crate) half_mode: Option<String>,
}

impl Setting {
    /// Parsed from the comments of a case, such as `// free: v[100:131], s[40:47]`, `// live: m0, s4` and
    /// `// scheduling: program`.
    pub(crate) fn of(case: &str) -> Self {
        let value = |key: &str| {
            let line = case.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": "));
            line.unwrap_or_default().split(", ").filter(|word| !word.is_empty()).collect::<Vec<_>>()
        };
        Self {
            free: value("free").into_iter().map(register).collect(),
            live: value("live").into_iter().map(register).collect(),
            half_mode: value("half mode").first().map(|why| (*why).to_owned()),
            scheduling: match value("scheduling")[..] {
                [] => Scheduling::Hardware,
                ["program"] => Scheduling::Program,
                ref other => panic!("scheduling {other:?}"),
            },
        }
    }
}

fn register(text: &str) -> Reg {
    if text == "m0" {
        return Reg::special(Special::M0, 1);
    }
    let file = match text.as_bytes()[0] {
        b'v' => RegFile::Vgpr,
        b's' => RegFile::Sgpr,
        _ => panic!("register {text}"),
    };
    let numbers = text[1..].trim_matches(['[', ']']);
    let (first, last) = numbers.split_once(':').unwrap_or((numbers, numbers));
    let [first, last] = [first, last].map(|number| number.parse::<u16>().unwrap_or_else(|_| panic!("register {text}")));
    Reg::new(file, first, u8::try_from(last - first + 1).unwrap())
}

pub(crate) fn isa(target: &str) -> Isa {
    Isa::new(Target::find(target).unwrap())
}

/// The result for one instruction.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The answer of a family, for the reader.
    pub(crate) note: Option<String>,
    pub(crate) code: Vec<Inst>,
}

/// The result of a case: its instructions, or the refusals.
pub(crate) type Outcome = Result<Vec<Line>, Vec<String>>;

struct SiteContext<'a> {
    isa: Isa,
    code: &'a [Inst],
    banks: VgprBanks,
    start: usize,
    index: usize,
    setting: &'a Setting,
}

impl SiteContext<'_> {
    fn defs(&self) -> ReachingDefs<'_> {
        ReachingDefs { isa: self.isa, banks: self.banks, before: &self.code[self.start..self.index] }
    }
}

impl SiteQueries for SiteContext<'_> {
    fn banks(&self) -> VgprBanks {
        self.banks
    }

    fn last_def(&self, reg: Reg) -> Option<&Inst> {
        self.defs().last_def(None, reg)
    }

    fn alignment(&self, reg: Reg) -> u32 {
        self.defs().known_alignment(None, reg)
    }

    fn find_dead(&self, file: RegFile, count: u8, align: u8, excluding: &RegSet) -> Option<Reg> {
        let fits = |reg: &Reg| reg.index.is_multiple_of(u16::from(align)) && !excluding.touches(*reg);
        self.setting.free.iter().filter(|free| free.file == file).find_map(|free| {
            let last = (free.index + u16::from(free.count)).checked_sub(u16::from(count))?;
            (free.index..=last).map(|index| Reg::new(file, index, count)).find(fits)
        })
    }

    /// Scans straight to the end. A branch may reach any reader.
    fn is_dead_after(&self, reg: Reg) -> bool {
        let branches =
            self.code.iter().any(|inst| inst.control_flow(0, self.isa) != Next::Next && inst.mnemonic() != "s_endpgm");
        for inst in self.code[if branches { 0 } else { self.index + 1 }..].iter() {
            let own = std::ptr::eq(inst, &self.code[self.index]);
            if !own && inst.read_set(self.isa, VgprBanks::UNKNOWN).touches(reg) {
                return false;
            }
            if !branches && inst.overwritten_set(self.isa, VgprBanks::UNKNOWN).contains(reg) {
                return true;
            }
        }
        !self.setting.live.touches(reg)
    }

    fn outstanding(&self, reg: Reg) -> Vec<WaitCounter> {
        let waits = |inst: &Inst| inst.mnemonic() == "s_wait_dscnt";
        let since = self.code[..self.index].iter().rposition(waits).map_or(0, |wait| wait + 1);
        let writes = |inst: &Inst| inst.is(Flag::Ds) && inst.written_set(self.isa, VgprBanks::UNKNOWN).touches(reg);
        let older = self.code[since..self.index].iter().any(writes);
        if older { vec![WaitCounter::Lds] } else { Vec::new() }
    }

    fn other_half_mode(&self) -> Option<&str> {
        self.setting.half_mode.as_deref()
    }

    fn scheduling(&self) -> Scheduling {
        self.setting.scheduling
    }
}

/// Decodes the instructions in some bytes.
pub(crate) fn decode(isa: Isa, bytes: &[u8]) -> Vec<Inst> {
    isa.walk(bytes).map(|(offset, inst)| inst.unwrap_or_else(|error| panic!("{offset:#x}: {error}"))).collect()
}

/// Runs all families on the code of a case.
pub(crate) fn run(bytes: &[u8], setting: &Setting) -> Outcome {
    let (source, target) = (isa("gfx1250"), isa("gfx1250-strict"));
    let rewriter = FamilyRegistry::installed().prepare_rewriter().unwrap();
    let code = decode(source, bytes);
    let graph = Graph::of(&code, source);
    let mut lines = Vec::new();
    let mut refused = Vec::new();
    for (index, inst) in code.iter().enumerate() {
        let block = graph.block_of(index);
        let banks = graph.banks_at(&code, source, index);
        let around = SiteContext { isa: source, code: &code, banks, start: graph.starts[block], index, setting };
        match answer(&rewriter, &CodeSite { source, target, inst }, &around) {
            Ok(line) => lines.push(line),
            Err(text) => refused.push(text),
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let targets = graph.targets.clone();
    let mut lines = patch_branches(lines, &targets, target);
    for family in rewriter.function_families() {
        lines = functions(&rewriter, family, lines, &targets, setting, target)
            .map_err(|refusal| vec![refusal.to_string()])?;
        lines = patch_branches(lines, &targets, target);
    }
    Ok(lines)
}

fn answer(rewriter: &FamilyRewriter, site: &CodeSite<'_>, around: &SiteContext<'_>) -> Result<Line, String> {
    let same = Line { note: None, code: vec![*site.inst] };
    if !rewriter.concerns_encoding(site.inst.entry()) {
        return Ok(same);
    }
    match rewriter.rewrite_site(site, around) {
        Ok(None) => Ok(same),
        Ok(Some(FamilyAnswer { answer: SiteAnswer::NotMine, .. })) => panic!("an answer that the registry keeps"),
        Ok(Some(FamilyAnswer { family, answer: SiteAnswer::Leave(why) })) => {
            Ok(Line { note: Some(format!("{}: left: {why}", family.name)), ..same })
        }
        Ok(Some(FamilyAnswer { family, answer: SiteAnswer::Replace(replacement) })) => {
            let note = describe(family.name, site.inst, &replacement);
            Ok(Line { note: Some(note), code: replacement.code })
        }
        Err(FamilyRefusal { family, refusal }) => Err(format!("{}: {}: {refusal}", family.name, site.inst.mnemonic())),
    }
}

fn describe(family: &str, old: &Inst, new: &Replacement) -> String {
    let assumes = new.assumes.map_or(String::new(), |what| format!("; takes for granted: {what}"));
    format!("{family}: {} bytes for {}{assumes}", new.size(), old.len())
}

/// Control flow of a case. Branch targets are instruction numbers.
struct Graph {
    starts: Vec<usize>,
    successors: Vec<Vec<u32>>,
    banks: Vec<VgprBanks>,
    targets: Vec<Option<usize>>,
}

impl Graph {
    fn of(code: &[Inst], isa: Isa) -> Self {
        let offsets: Vec<u64> = code
            .iter()
            .scan(0, |at, inst| {
                let here = *at;
                *at += u64::from(inst.len());
                Some(here)
            })
            .collect();
        let targets: Vec<Option<usize>> = code
            .iter()
            .zip(&offsets)
            .map(|(inst, at)| {
                let target = inst.branch_target(*at, isa)?;
                Some(offsets.iter().position(|offset| *offset == target).expect("branches lead to instructions"))
            })
            .collect();
        Self::with_targets(code, isa, targets)
    }

    fn with_targets(code: &[Inst], isa: Isa, targets: Vec<Option<usize>>) -> Self {
        let ends = |inst: &Inst| inst.control_flow(0, isa) != Next::Next;
        let mut starts: Vec<usize> = [0].into_iter().chain(targets.iter().flatten().copied()).collect();
        starts.extend(code.iter().enumerate().filter(|(_, inst)| ends(inst)).map(|(index, _)| index + 1));
        starts.retain(|start| *start < code.len());
        starts.sort_unstable();
        starts.dedup();
        let mut graph = Self { successors: Vec::new(), banks: Vec::new(), starts, targets };
        graph.successors = (0..graph.starts.len()).map(|block| graph.next(code, isa, block)).collect();
        graph.banks = graph.flow_banks(code, isa);
        graph
    }

    fn end(&self, block: usize, code: &[Inst]) -> usize {
        self.starts.get(block + 1).copied().unwrap_or(code.len())
    }

    fn block_of(&self, index: usize) -> usize {
        self.starts.partition_point(|start| *start <= index) - 1
    }

    fn next(&self, code: &[Inst], isa: Isa, block: usize) -> Vec<u32> {
        let last = self.end(block, code) - 1;
        let behind = (last + 1 < code.len()).then_some(block + 1);
        let target = self.targets[last].map(|index| self.block_of(index));
        let next: Vec<usize> = match code[last].control_flow(0, isa) {
            Next::Next | Next::Call { .. } => behind.into_iter().collect(),
            Next::Branch { conditional, .. } => target.into_iter().chain(behind.filter(|_| conditional)).collect(),
            Next::Indirect { .. } | Next::End => Vec::new(),
        };
        next.into_iter().map(|next| next as u32).collect()
    }

    fn flow_banks(&self, code: &[Inst], isa: Isa) -> Vec<VgprBanks> {
        let mut banks: Vec<Option<VgprBanks>> = vec![None; self.starts.len()];
        banks[0] = Some(VgprBanks::ENTRY);
        let mut work = vec![0];
        while let Some(block) = work.pop() {
            let body = &code[self.starts[block]..self.end(block, code)];
            let after = body.iter().fold(banks[block].unwrap(), |banks, inst| banks.mode_after(inst, isa));
            for next in self.successors[block].iter().map(|next| *next as usize) {
                let joined = banks[next].map_or(after, |known| known.join(after));
                if banks[next] != Some(joined) {
                    banks[next] = Some(joined);
                    work.push(next);
                }
            }
        }
        banks.into_iter().map(|banks| banks.unwrap_or(VgprBanks::UNKNOWN)).collect()
    }

    fn banks_at(&self, code: &[Inst], isa: Isa, index: usize) -> VgprBanks {
        let block = self.block_of(index);
        code[self.starts[block]..index].iter().fold(self.banks[block], |banks, inst| banks.mode_after(inst, isa))
    }
}

/// The instructions of each block. Branches point to the new positions of their targets. A branch is never the last of
/// several instructions.
struct Bodies<'c>(Vec<&'c [Inst]>);

impl FunctionCode for Bodies<'_> {
    fn of_block(&self, number: usize) -> &[Inst] {
        self.0[number]
    }
}

fn patch_branches(mut lines: Vec<Line>, targets: &[Option<usize>], isa: Isa) -> Vec<Line> {
    let size = |line: &Line| line.code.iter().map(|inst| i64::from(inst.len())).sum::<i64>();
    let mut starts = vec![0];
    lines.iter().for_each(|line| starts.push(starts[starts.len() - 1] + size(line)));
    for (index, target) in targets.iter().enumerate().filter_map(|(index, target)| Some((index, (*target)?))) {
        let distance = (starts[target] - starts[index + 1]) / 4;
        let line = lines[index].code.last_mut().unwrap();
        *line = line.with_field(isa, Name::Simm16, distance as u16 as u64).unwrap();
    }
    lines
}

/// Runs one family of scope `Function`. Instructions inserted before another become part of its line, and a branch to
/// it points to the inserted ones.
fn functions(
    rewriter: &FamilyRewriter,
    family: &hotswap_families::PatchFamily,
    mut lines: Vec<Line>,
    targets: &[Option<usize>],
    setting: &Setting,
    isa: Isa,
) -> Result<Vec<Line>, SiteRefusal> {
    // Numbers of instructions, with the line of each and its index in that line.
    let places: Vec<(usize, usize)> = lines
        .iter()
        .enumerate()
        .flat_map(|(line, code)| (0..code.code.len()).map(move |place| (line, place)))
        .collect();
    let code: Vec<Inst> = lines.iter().flat_map(|line| line.code.iter().copied()).collect();
    let first = |line: usize| places.iter().position(|place| *place == (line, 0)).unwrap();
    let mut new_targets = vec![None; code.len()];
    for (line, target) in targets.iter().enumerate() {
        let last = places.iter().rposition(|place| place.0 == line).unwrap();
        new_targets[last] = target.map(first);
    }
    let graph = Graph::with_targets(&code, isa, new_targets);
    let leaves = |block: usize| {
        let last = &code[graph.end(block, &code) - 1];
        matches!(last.control_flow(0, isa), Next::Call { .. } | Next::Indirect { .. })
    };
    let blocks: Vec<FlowBlock<'_>> = (0..graph.starts.len())
        .map(|block| FlowBlock {
            banks: graph.banks[block],
            successors: &graph.successors[block],
            leaves: leaves(block),
            begins: block == 0,
        })
        .collect();
    let bodies: Vec<&[Inst]> =
        (0..graph.starts.len()).map(|block| &code[graph.starts[block]..graph.end(block, &code)]).collect();
    let concerned: Vec<usize> = (0..bodies.len())
        .filter(|block| bodies[*block].iter().any(|inst| rewriter.concerns_family(family, inst)))
        .collect();
    let bodies = Bodies(bodies);
    let (scheduling, concerned) = (setting.scheduling, &concerned[..]);
    let flow = FunctionFlow { target: isa, blocks: &blocks, code: &bodies, concerned, scheduling };
    let mut insertions = rewriter.function_insertions(family, &flow)?;
    insertions.sort_by_key(|insertion| (insertion.block, insertion.before));
    for Insertion { block, before, code: new } in insertions.into_iter().rev() {
        let (line, place) = places[graph.starts[block] + before];
        let note = format!("{}: {} instructions put in", family.name, new.len());
        let old = lines[line].note.take();
        lines[line].note = Some(old.map_or(note.clone(), |old| format!("{old}\n// {note}")));
        lines[line].code.splice(place..place, new);
    }
    Ok(lines)
}
