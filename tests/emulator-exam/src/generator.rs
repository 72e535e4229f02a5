//! Small C programs that depend on a seed only: integers of all sizes, floats, arrays, loops, branches, calls.
//!
//! Invariants: no undefined behaviour: shifts are masked, divisors are not 0, arrays are indexed by masked numbers, loops
//! end. Floats are added, subtracted and multiplied, and kept away from overflow by comparisons.

/// A source of numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u32) as usize]
    }
}

/// Variables of a program: `a` to `d` of 32 bits, `p` and `q` signed, `x` and `y` of 64 bits, `f` and `g` floats, `t` an
/// array.
struct Program {
    random: Random,
    text: String,
    depth: u32,
}

const WORDS: &[&str] = &["a", "b", "c", "d"];

impl Program {
    fn line(&mut self, line: &str) {
        self.text.push_str(&"    ".repeat(self.depth as usize + 1));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// An expression of type `u32`.
    fn word(&mut self, depth: u32) -> String {
        if depth == 0 || self.random.below(5) == 0 {
            return match self.random.below(6) {
                0 => format!("{}u", self.random.next()),
                1 => format!("{}u", self.random.below(64)),
                2 => format!("t[{} & 15]", self.random.of(WORDS)),
                _ => self.random.of(WORDS).to_owned(),
            };
        }
        let (left, right) = (self.word(depth - 1), self.word(depth - 1));
        match self.random.below(20) {
            0 => format!("({left} + {right})"),
            1 => format!("({left} - {right})"),
            2 => format!("({left} * {right})"),
            3 => format!("({left} & {right})"),
            4 => format!("({left} | {right})"),
            5 => format!("({left} ^ {right})"),
            6 => format!("({left} << ({right} & 31))"),
            7 => format!("({left} >> ({right} & 31))"),
            8 => format!("(u32)((i32){left} >> ({right} & 31))"),
            // Clang 22 divides a sign-extended byte as if it were an unsigned number of 24 bits: never one as it is.
            9 => format!("(({left} ^ u) / ({right} | 1))"),
            10 => format!("(({left} ^ u) % ({right} | 1))"),
            11 => format!("({left} < {right} ? {left} : {right})"),
            12 => format!("((i32){left} > (i32){right} ? {left} : {right})"),
            13 => format!("(u32)(i32)(i8)({left} + {right})"),
            14 => format!("(u32)(u16)({left} ^ {right})"),
            15 => format!("(u32)(x >> ({left} & 63))"),
            16 => format!("(u32)((u64){left} * {right} >> 32)"),
            17 => format!("(u32)__builtin_popcount({left} ^ {right})"),
            18 => format!("({left} == {right})"),
            _ => format!("(u32)(i32)f + {left}"),
        }
    }

    /// An expression of type `u64`.
    fn wide(&mut self) -> String {
        let (left, right) = (self.word(1), self.word(1));
        match self.random.below(9) {
            0 => format!("x + y * {left}"),
            1 => format!("x * (u64){left} - y"),
            2 => format!("(x << ({left} & 63)) ^ y"),
            3 => format!("(x >> ({left} & 63)) | (u64){right} << 32"),
            4 => format!("(u64)((i64)x >> ({right} & 63))"),
            5 => "x / ((y >> 40) | 1)".to_owned(),
            6 => format!("(x < y ? x : y) + {left}"),
            7 => format!("(u64)(i64)(i32){left} + x"),
            _ => format!("x % (y | 1) ^ {right}"),
        }
    }

    fn float(&mut self) -> String {
        match self.random.below(7) {
            0 => "f + g * 0.5f".to_owned(),
            1 => "f - g".to_owned(),
            2 => "f * g * 0.001f".to_owned(),
            3 => format!("(float)({} & 0xffff)", self.random.of(WORDS)),
            4 => "f < g ? g : f * 0.75f".to_owned(),
            5 => "f / (g * g + 1.0f)".to_owned(),
            _ => "-f + 3.0f".to_owned(),
        }
    }

    fn assignment(&mut self) {
        match self.random.below(10) {
            0 => {
                let value = self.wide();
                let target = self.random.of(&["x", "y"]);
                self.line(&format!("{target} = {value};"));
            }
            1 => {
                let value = self.float();
                let target = self.random.of(&["f", "g"]);
                self.line(&format!("{target} = {value};"));
                self.line(&format!("if (!({target} < 1e6f && {target} > -1e6f)) {target} = 1.5f;"));
            }
            2 => {
                let (index, value) = (self.random.of(WORDS), self.word(2));
                self.line(&format!("t[{index} & 15] = {value};"));
            }
            _ => {
                let (target, value) = (self.random.of(WORDS), self.word(3));
                self.line(&format!("{target} = {value};"));
            }
        }
    }

    fn statements(&mut self, count: u32) {
        for _ in 0..count {
            match self.random.below(7) {
                0 if self.depth < 3 => {
                    let condition = self.word(2);
                    self.block(&format!("if ({condition} & 1) {{"), 2);
                }
                1 if self.depth < 2 => {
                    let bound = self.random.below(6) + 2;
                    let name = format!("k{}", self.depth);
                    let extra = self.random.of(WORDS);
                    let head = format!("for (u32 {name} = 0; {name} < {bound}u + ({extra} & 3); ++{name}) {{");
                    self.block(&head, 2);
                }
                _ => self.assignment(),
            }
        }
    }

    fn block(&mut self, head: &str, count: u32) {
        self.line(head);
        self.depth += 1;
        self.statements(count);
        self.depth -= 1;
        self.line("}");
    }
}

/// The source of one function `program_NUMBER`.
fn function(seed: u64, number: u32) -> String {
    let mut program = Program { random: Random(seed | 1), text: String::new(), depth: 0 };
    (0..20).for_each(|_| {
        program.random.next();
    });
    program.line("u32 a = u, b = v, c = u ^ v, d = mix(u + v);");
    program.line("u64 x = (u64)mix(u) << 32 | v, y = (u64)mix(v) << 29 | u;");
    program.line("float f = (float)(u & 0xfff), g = (float)(v & 0xff) + 0.25f;");
    program.line("u32 t[16];");
    program.line("for (u32 k = 0; k < 16; ++k) t[k] = mix(u + k);");
    program.statements(14);
    program.line("u32 bits;");
    program.line("__builtin_memcpy(&bits, &f, 4);");
    program
        .line("u32 sum = a ^ b * 3 ^ c * 5 ^ d * 7 ^ (u32)x ^ (u32)(x >> 32) * 9 ^ (u32)y * 11 ^ (f == f ? bits : 1);");
    program.line("for (u32 k = 0; k < 16; ++k) sum = sum * 31 + t[k];");
    program.line("return sum;");
    format!("DEVICE __attribute__((noinline)) u32 program_{number}(u32 u, u32 v) {{\n{}}}\n", program.text)
}

/// A case of `count` programs, each of which runs on its own work-items.
pub fn generated_source(seed: u64, count: u32) -> String {
    let items = 8 * count;
    let mut source = format!(
        "// items={items} group=64 input={} output={items}\n#include \"twin.h\"\n#define GROUP 64\n",
        2 * items
    );
    for number in 0..count {
        source += &function(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ u64::from(number) << 33, number);
    }
    source += "DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {\n    u32 u = in[2 * id], v = in[2 * id + 1], r = 0;\n";
    source += &format!("    switch (id % {count}) {{\n");
    for number in 0..count {
        source += &format!("    case {number}: r = program_{number}(u, v); break;\n");
    }
    source + "    }\n    out[id] = r;\n}\nITEM_KERNEL\nMAIN\n"
}
