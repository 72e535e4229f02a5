//! Conditions that test the names of GPUs: where the preprocessor's text is the same for all GPUs, code is derived, and otherwise
//! never. The judge is clang's own text for each GPU.
//!
//! Rows are written by hand, with the most runs of the preprocessor that they may take; further headers are generated, with
//! random conditions in each form.

use hotswap_tests::strace::{Log, STRACE};
use hotswap_tests::{Bench, Call, Clang, Scratch, everything, in_turn, parallel, say};

const SOURCE: &str = "gfx1030";
const TARGETS: [&str; 2] = ["gfx1031", "gfx1032"];
const PAIRS: &str = "--hotswap-retarget=gfx1030=>gfx1031,gfx1032";

const ALL: &str = "#if defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__)\nint all;\n#endif\n";
const OTHERS: &str =
    "#if !defined(__gfx1030__) && !defined(__gfx1031__) && !defined(__gfx1032__)\nint none;\n#else\nint one;\n#endif\n";
const REDEFINED: &str = "#if defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__)\nint V(all);\n#undef __gfx1030__\n#endif\n";

/// Runs for a text that two of them suffice for, and for one that is compared for each GPU after one that stops.
const SETTLED: usize = 2;
const COMPARED: usize = 4;
/// For one that may be compiled for each GPU, whatever its texts are.
const NOT_ASKED: usize = 0;

/// A unit `unit.hip`, which includes `names.h`.
struct Row {
    what: &'static str,
    header: &'static str,
    unit: &'static str,
    words: &'static str,
    runs: usize,
}

const fn plain_row(what: &'static str, header: &'static str, runs: usize) -> Row {
    Row { what, header, unit: "#include \"names.h\"\nint rest;\n", words: "", runs }
}

const fn unit_row(
    what: &'static str,
    header: &'static str,
    unit: &'static str,
    words: &'static str,
    runs: usize,
) -> Row {
    Row { what, header, unit, words, runs }
}

const ROWS: &[Row] = &[
    plain_row("no name", "#if defined(__GFX10__)\nint some;\n#endif\n", 1),
    plain_row("each name", ALL, SETTLED),
    plain_row("no name of ours", OTHERS, SETTLED),
    plain_row("two names", "#if defined(__gfx1030__) || defined(__gfx1031__)\nint two;\n#endif\n", COMPARED),
    plain_row("#ifdef", "#ifdef __gfx1031__\nint one;\n#endif\n", COMPARED),
    plain_row("#ifdef without effect", "#ifdef __gfx1031__\n#endif\n", COMPARED),
    plain_row(
        "beside another name",
        "#if __GFX10__ && (__gfx1030__ || __gfx1031__ || __gfx1032__)\nint one;\n#endif\n",
        SETTLED,
    ),
    plain_row(
        "split lines",
        "#if defined(__gfx1030__) || \\\n  defined(__gfx1031__) \\\n || defined(__gfx1032__)\nint l = __LINE__;\n#endif\n",
        SETTLED,
    ),
    plain_row(
        "returns before line ends",
        "#if defined(__gfx1030__) || \\\r\n defined(__gfx1031__) || defined(__gfx1032__)\r\nint l;\r\n#endif\r\n",
        SETTLED,
    ),
    plain_row(
        "the second branch",
        "#if defined(NONE)\nint a;\n#elif defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__)\nint b;\n#endif\n",
        SETTLED,
    ),
    plain_row(
        "a chain with a branch for each",
        "#if defined(__gfx1030__)\nint a;\n#elif defined(__gfx1031__)\nint b;\n#else\nint c;\n#endif\n",
        COMPARED,
    ),
    plain_row(
        "in a branch",
        "#if defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__)\n#ifdef __gfx1032__\nint b;\n#endif\n#endif\n",
        COMPARED,
    ),
    plain_row(
        "in the body of a macro",
        "#define ALL (defined(__gfx1030__) || defined(__gfx1031__))\n#if ALL\nint a;\n#endif\n",
        COMPARED,
    ),
    plain_row("as a value", "int a = __gfx1030__ + 1;\n", COMPARED),
    plain_row(
        "behind a comment",
        "/* many\n*/ #if defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__)\nint a;\n#endif\n",
        COMPARED,
    ),
    plain_row("in a comment", "// __gfx1031__\n/* __gfx1030__ */ int a;\n", 1),
    plain_row("a file's name that lies", "#line 1 \"unit.hip\"\n#ifdef __gfx1031__\nint a;\n#endif\n", COMPARED),
    unit_row(
        "undefined between two inclusions",
        REDEFINED,
        "#define V(n) n##1\n#include \"names.h\"\n#undef V\n#define V(n) n##2\n#include \"names.h\"\n",
        "",
        COMPARED,
    ),
    unit_row("by a link to the directory", ALL, "#include \"link/names.h\"\nint rest;\n", "", SETTLED),
    unit_row("behind a link to another directory", ALL, "#include \"far/../names.h\"\nint rest;\n", "", COMPARED),
    unit_row("through `..`", ALL, "#include \"deep/../names.h\"\nint rest;\n", "", SETTLED),
    unit_row("by a directory of the arguments", ALL, "#include <names.h>\nint rest;\n", "-I ./deep/..", SETTLED),
    unit_row("with the name in the arguments", ALL, "#include \"names.h\"\n", "-DX=__gfx1030__", NOT_ASKED),
    unit_row("defined by the arguments", ALL, "#include \"names.h\"\n", "-D__gfx1031__", NOT_ASKED),
    unit_row("under an overlay of the user's", ALL, "#include \"names.h\"\n", "-ivfsoverlay user.yaml", COMPARED),
    unit_row("with messages of another form", ALL, "#include \"names.h\"\n", "-fdiagnostics-format=msvc", COMPARED),
];

/// A directory with all that the rows include. `far` leads to a directory whose parent has other names.
fn write_files(bench: &Bench, row: &Row) -> Scratch {
    let scratch = bench.scratch();
    scratch.write("names.h", row.header);
    scratch.write("unit.hip", row.unit);
    scratch.write("deep/empty.h", "");
    scratch.write("elsewhere/names.h", "#ifdef __gfx1031__\nint far;\n#endif\n");
    scratch.write("elsewhere/inner/empty.h", "");
    scratch.write("user.yaml", r#"{"version": 0, "roots": []}"#);
    for (link, target) in [("link", "."), ("far", "elsewhere/inner")] {
        std::os::unix::fs::symlink(target, scratch.outside(link)).unwrap();
    }
    scratch
}

struct Judged<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    scratch: Scratch,
    words: Vec<String>,
}

impl Judged<'_> {
    fn clang_text(&self, gpu: &str) -> Result<String, String> {
        let mut words = vec![self.clang.program.clone(), format!("--offload-arch={gpu}")];
        words.extend(["--offload-device-only", "-E", "-P"].map(str::to_owned));
        let ran = Call::new(self.bench, &self.scratch.inside, &[&words[..], &self.words].concat()).run();
        if ran.ok() { Ok(ran.stdout) } else { Err(ran.brief()) }
    }

    /// For each target whether HotSwap derives its code from the source's, and the runs of the preprocessor.
    fn answers(&self) -> Result<(Vec<bool>, usize), String> {
        let mut words = vec![self.bench.installed("bin/hotswap-clang++"), format!("--offload-arch={SOURCE}")];
        words.extend(["-Xoffload-linker", PAIRS, "--hotswap-explain", "-c"].map(str::to_owned));
        let words = [&words[..], &self.words].concat();
        let call = Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone());
        // The first asks for the macros of the GPUs, too.
        let first = call.run();
        let ran = call.under(&[STRACE, &["trace"]].concat()).run();
        if !ran.ok() || (&first.stdout, &first.stderr) != (&ran.stdout, &ran.stderr) {
            return Err(format!("{} {}", first.brief(), ran.brief()));
        }
        let log = Log::parse(&String::from_utf8_lossy(&self.scratch.read("trace")));
        let runs = log.execs.iter().filter(|one| one.words.iter().any(|word| word == "-E")).count();
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let same = |target: &&str| said.contains(&format!("text: {target}: same program as for {SOURCE}\n"));
        Ok((TARGETS.iter().map(same).collect(), runs))
    }

    /// The runs, if the answers are those of clang's texts, or cautious where they may be.
    fn judge(&self, expected_runs: usize) -> Result<usize, String> {
        let source = self.clang_text(SOURCE)?;
        let expected =
            TARGETS.iter().map(|target| Ok(self.clang_text(target)? == source)).collect::<Result<Vec<_>, String>>()?;
        let (answers, runs) = self.answers()?;
        let is_cautious = expected_runs == NOT_ASKED && !answers.contains(&true);
        if answers == expected || is_cautious {
            Ok(runs)
        } else {
            Err(format!("derived: {answers:?}, by clang's texts: {expected:?}"))
        }
    }
}

fn judged<'b>(bench: &'b Bench, clang: &'b Clang, row: &Row) -> Judged<'b> {
    let mut words = clang.light();
    words.extend(row.words.split_whitespace().chain(["-nogpulib", "-w", "unit.hip"]).map(str::to_owned));
    Judged { bench, clang, scratch: write_files(bench, row), words }
}

fn judge_row(bench: &Bench, clang: &Clang, row: &Row) -> Result<(), String> {
    match judged(bench, clang, row).judge(row.runs)? {
        runs if runs == row.runs || row.runs == NOT_ASKED => Ok(()),
        runs => Err(format!("{runs} runs of the preprocessor, {} expected", row.runs)),
    }
}

#[test]
fn code_is_derived_where_clang_sees_one_text() {
    let Some(bench) = Bench::ready("name conditions") else { return };
    let cases = in_turn("name conditions", ROWS, &bench.clangs, |_| false);
    let results = parallel(&cases, |(clang, row)| judge_row(&bench, clang, row));
    let wrong: Vec<_> = cases
        .iter()
        .zip(results)
        .filter_map(|((clang, row), result)| Some(format!("clang {} {}: {}", clang.version, row.what, result.err()?)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// A source of numbers that is the same everywhere (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// `kinds` of parts: the first ones have one value for all GPUs, or join others.
    fn random_condition(&mut self, depth: u32, kinds: u64) -> String {
        let name = ["__gfx1030__", "__gfx1031__", "__gfx1032__", "__GFX10__", "ABSENT"][self.below(5) as usize];
        match self.below(if depth == 0 { 4 } else { kinds }) {
            0 => "(__gfx1030__ || defined(__gfx1031__) || defined __gfx1032__)".to_owned(),
            1 => "!defined(__gfx1030__) && !__gfx1031__ && !defined __gfx1032__".to_owned(),
            2 => "__GFX10__".to_owned(),
            3 => "defined(ABSENT)".to_owned(),
            4 => format!("!{}", self.random_operand(depth, kinds)),
            5 => format!("{} && {}", self.random_operand(depth, kinds), self.random_operand(depth, kinds)),
            6 => format!("{} || {}", self.random_operand(depth, kinds), self.random_operand(depth, kinds)),
            7 => format!("defined({name})"),
            8 => format!("defined {name}"),
            9 => name.to_owned(),
            10 => format!("({} == 0)", self.random_condition(depth - 1, kinds)),
            _ => format!("({} ? {name} : 1)", self.random_condition(depth - 1, kinds)),
        }
    }

    fn random_operand(&mut self, depth: u32, kinds: u64) -> String {
        format!("({})", self.random_condition(depth - 1, kinds))
    }

    fn random_header(&mut self) -> String {
        let conditions = 1 + self.below(2);
        let kinds = [7, 10, 12][self.below(3) as usize];
        let chains = (0..conditions).map(|number| {
            let (one, other) = (self.random_condition(3, kinds), self.random_condition(2, kinds));
            format!("#if {one}\nint a{number};\n#elif {other}\nint b{number};\n#else\nint c{number};\n#endif\n")
        });
        chains.collect()
    }
}

#[test]
fn random_conditions_are_answered_as_clang_answers_them() {
    let Some(bench) = Bench::ready("random name conditions") else { return };
    let clang = bench.clangs.last().expect("there is a compiler");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let headers: Vec<String> = (0..if everything() { 400 } else { 24 }).map(|_| random.random_header()).collect();
    let results = parallel(&headers, |header| {
        let header: &'static str = header.clone().leak();
        judged(&bench, clang, &plain_row("random", header, COMPARED))
            .judge(COMPARED)
            .map_err(|error| format!("{header}{error}"))
    });
    let settled = results.iter().filter(|result| **result == Ok(SETTLED)).count();
    let compared = results.iter().filter(|result| **result == Ok(COMPARED)).count();
    say(&format!("random name conditions: {} headers, {settled} settled, {compared} compared", headers.len()));
    let wrong: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty() && settled > 0 && compared > 0, "{settled} {compared}\n{}", wrong.join("\n"));
}
