//! Terms over bit vectors: printed as SMT-LIB, and evaluated on numbers.
//!
//! Invariants: both readings are of the same term, so a term that is evaluated like the emulator's result on many numbers
//! is the one that is proven. Widths are 1 to 64 bits.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::rc::Rc;

/// A term with its width.
#[derive(Debug, Clone)]
pub struct Term(Rc<TermNode>);

#[derive(Debug)]
struct TermNode {
    width: u32,
    kind: TermKind,
}

#[derive(Debug)]
enum TermKind {
    Variable(String),
    Constant(u64),
    Not(Term),
    Binary(BinaryOperator, Term, Term),
    /// The first is of one bit.
    Choice(Term, Term, Term),
    /// Lowest bit.
    Extract(u32, Term),
    /// Zeros above.
    Extended(Term),
    /// The byte of memory at an address.
    Byte(MemoryTerm, Term),
}

/// An operator of two terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one.
    Xor,
    /// To the left; 0 from the width on.
    ShiftLeft,
    /// To the right; 0 from the width on.
    ShiftRight,
    /// One bit: equal.
    Equal,
    /// One bit: unsigned less.
    Less,
}

/// Memory of bytes.
#[derive(Debug, Clone)]
pub struct MemoryTerm(Rc<MemoryNode>);

#[derive(Debug)]
enum MemoryNode {
    Initial,
    Store(MemoryTerm, Term, Term),
}

/// Values of variables, and of the bytes of memory.
#[derive(Debug, Default)]
pub struct TermValues {
    /// By name.
    pub variables: BTreeMap<String, u64>,
    /// The bytes at the start; 0 beyond them.
    pub memory: Vec<u8>,
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

impl Term {
    fn new(width: u32, kind: TermKind) -> Self {
        Self(Rc::new(TermNode { width, kind }))
    }

    pub fn variable(name: impl Into<String>, width: u32) -> Self {
        Self::new(width, TermKind::Variable(name.into()))
    }

    /// A number.
    pub fn constant(value: u64, width: u32) -> Self {
        Self::new(width, TermKind::Constant(value & mask(width)))
    }

    /// Its width in bits.
    pub fn width(&self) -> u32 {
        self.0.width
    }

    fn binary(&self, operator: BinaryOperator, other: &Self) -> Self {
        assert_eq!(self.width(), other.width(), "widths of {operator:?}");
        let width = if matches!(operator, BinaryOperator::Equal | BinaryOperator::Less) { 1 } else { self.width() };
        Self::new(width, TermKind::Binary(operator, self.clone(), other.clone()))
    }

    /// Sum.
    pub fn add(&self, other: &Self) -> Self {
        self.binary(BinaryOperator::Add, other)
    }

    /// Difference.
    pub fn subtract(&self, other: &Self) -> Self {
        self.binary(BinaryOperator::Subtract, other)
    }

    /// Product.
    pub fn multiply(&self, other: &Self) -> Self {
        self.binary(BinaryOperator::Multiply, other)
    }

    /// Bits of both.
    pub fn and(&self, other: &Self) -> Self {
        self.binary(BinaryOperator::And, other)
    }

    /// Bits of either.
    pub fn or(&self, other: &Self) -> Self {
        self.binary(BinaryOperator::Or, other)
    }

    /// Bits of one.
    pub fn xor(&self, other: &Self) -> Self {
        self.binary(BinaryOperator::Xor, other)
    }

    /// To the left.
    pub fn shift_left(&self, by: &Self) -> Self {
        self.binary(BinaryOperator::ShiftLeft, by)
    }

    /// To the right.
    pub fn shift_right(&self, by: &Self) -> Self {
        self.binary(BinaryOperator::ShiftRight, by)
    }

    /// Whether both are equal.
    pub fn equal(&self, other: &Self) -> Self {
        self.binary(BinaryOperator::Equal, other)
    }

    /// Whether it is less, without signs.
    pub fn less(&self, other: &Self) -> Self {
        self.binary(BinaryOperator::Less, other)
    }

    /// All bits inverted.
    pub fn inverted(&self) -> Self {
        Self::new(self.width(), TermKind::Not(self.clone()))
    }

    /// `yes` where this bit is 1.
    pub fn choose(&self, yes: &Self, no: &Self) -> Self {
        assert_eq!((self.width(), yes.width()), (1, no.width()), "widths of a choice");
        Self::new(yes.width(), TermKind::Choice(self.clone(), yes.clone(), no.clone()))
    }

    /// `width` bits from `low`.
    pub fn extract(&self, low: u32, width: u32) -> Self {
        Self::new(width, TermKind::Extract(low, self.clone()))
    }

    /// The same number with more bits.
    pub fn extended(&self, width: u32) -> Self {
        if width == self.width() { self.clone() } else { Self::new(width, TermKind::Extended(self.clone())) }
    }

    /// The number that it is, with values for its variables.
    pub fn evaluate(&self, values: &TermValues) -> u64 {
        let value = match &self.0.kind {
            TermKind::Variable(name) => values.variables.get(name).copied().unwrap_or(0),
            TermKind::Constant(value) => *value,
            TermKind::Not(term) => !term.evaluate(values),
            TermKind::Binary(operator, one, other) => {
                computed(*operator, one.evaluate(values), other.evaluate(values), self.width())
            }
            TermKind::Choice(bit, yes, no) => (if bit.evaluate(values) == 1 { yes } else { no }).evaluate(values),
            TermKind::Extract(low, term) => term.evaluate(values) >> low,
            TermKind::Extended(term) => term.evaluate(values),
            TermKind::Byte(memory, address) => memory.byte_value(address.evaluate(values), values),
        };
        value & mask(self.width())
    }
}

fn computed(operator: BinaryOperator, one: u64, other: u64, width: u32) -> u64 {
    match operator {
        BinaryOperator::Add => one.wrapping_add(other),
        BinaryOperator::Subtract => one.wrapping_sub(other),
        BinaryOperator::Multiply => one.wrapping_mul(other),
        BinaryOperator::And => one & other,
        BinaryOperator::Or => one | other,
        BinaryOperator::Xor => one ^ other,
        BinaryOperator::ShiftLeft => {
            if other < width.into() {
                one << other
            } else {
                0
            }
        }
        BinaryOperator::ShiftRight => {
            if other < width.into() {
                one >> other
            } else {
                0
            }
        }
        BinaryOperator::Equal => u64::from(one == other),
        BinaryOperator::Less => u64::from(one < other),
    }
}

impl MemoryTerm {
    /// The memory at the start.
    pub fn initial() -> Self {
        Self(Rc::new(MemoryNode::Initial))
    }

    /// The memory after a byte was stored.
    fn stored_byte(&self, address: &Term, byte: &Term) -> Self {
        Self(Rc::new(MemoryNode::Store(self.clone(), address.clone(), byte.clone())))
    }

    /// The byte at an address.
    pub fn byte(&self, address: &Term) -> Term {
        Term::new(8, TermKind::Byte(self.clone(), address.clone()))
    }

    /// The memory after a number of whole bytes was stored, the lowest byte first.
    pub fn stored(&self, address: &Term, value: &Term) -> Self {
        (0..value.width() / 8).fold(self.clone(), |memory, number| {
            memory.stored_byte(&address_term_at(number, address), &value.extract(8 * number, 8))
        })
    }

    pub fn dword(&self, address: &Term) -> Term {
        (1..4)
            .fold(shifted_byte_term(0, self, address), |sum, number| sum.or(&shifted_byte_term(number, self, address)))
    }

    fn byte_value(&self, address: u64, values: &TermValues) -> u64 {
        match &*self.0 {
            MemoryNode::Initial => values.memory.get(address as usize).copied().unwrap_or(0).into(),
            MemoryNode::Store(before, at, byte) => {
                if at.evaluate(values) == address {
                    byte.evaluate(values)
                } else {
                    before.byte_value(address, values)
                }
            }
        }
    }
}

fn address_term_at(number: u32, address: &Term) -> Term {
    address.add(&Term::constant(number.into(), 32))
}

fn shifted_byte_term(number: u32, term: &MemoryTerm, address: &Term) -> Term {
    let at = address.add(&Term::constant(number.into(), 32));
    term.byte(&at).extended(32).shift_left(&Term::constant(u64::from(8 * number), 32))
}

/// Prints terms, each shared one once.
#[derive(Debug, Default)]
pub struct SmtPrinter {
    text: String,
    terms: HashMap<*const TermNode, String>,
    memories: HashMap<*const MemoryNode, String>,
    variables: BTreeMap<String, u32>,
    /// Terms whose addresses are keys.
    kept: Vec<Term>,
}

impl SmtPrinter {
    /// The name of a term, which is defined before.
    pub fn term(&mut self, term: &Term) -> String {
        if let Some(name) = self.terms.get(&Rc::as_ptr(&term.0)) {
            return name.clone();
        }
        let body = self.body(term);
        let name = format!("t{}", self.terms.len());
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "(define-fun {name} () (_ BitVec {}) {body})", term.width());
        self.kept.push(term.clone());
        self.terms.insert(Rc::as_ptr(&term.0), name.clone());
        name
    }

    fn body(&mut self, term: &Term) -> String {
        let width = term.width();
        match &term.0.kind {
            TermKind::Variable(name) => {
                self.variables.insert(name.clone(), width);
                name.clone()
            }
            TermKind::Constant(value) => format!("(_ bv{value} {width})"),
            TermKind::Not(term) => format!("(bvnot {})", self.term(term)),
            TermKind::Binary(operator, one, other) => {
                let (one, other) = (self.term(one), self.term(other));
                binary(*operator, &one, &other)
            }
            TermKind::Choice(bit, yes, no) => {
                let [bit, yes, no] = [bit, yes, no].map(|term| self.term(term));
                format!("(ite (= {bit} #b1) {yes} {no})")
            }
            TermKind::Extract(low, term) => format!("((_ extract {} {low}) {})", low + width - 1, self.term(term)),
            TermKind::Extended(term) => format!("((_ zero_extend {}) {})", width - term.width(), self.term(term)),
            TermKind::Byte(memory, address) => {
                let (memory, address) = (self.memory(memory), self.term(address));
                format!("(select {memory} {address})")
            }
        }
    }

    /// The name of a memory.
    pub fn memory(&mut self, memory: &MemoryTerm) -> String {
        if let Some(name) = self.memories.get(&Rc::as_ptr(&memory.0)) {
            return name.clone();
        }
        let MemoryNode::Store(before, address, byte) = &*memory.0 else { return "memory".to_owned() };
        let before = self.memory(before);
        let (address, byte) = (self.term(address), self.term(byte));
        let name = format!("m{}", self.memories.len());
        let _ = writeln!(self.text, "(define-fun {name} () {MEMORY} (store {before} {address} {byte}))");
        self.memories.insert(Rc::as_ptr(&memory.0), name.clone());
        name
    }

    /// The whole question: whether `claim`, a term of one bit, can be 0.
    pub fn question(mut self, claim: &Term) -> String {
        let claim = self.term(claim);
        let mut text = format!("(set-logic QF_ABV)\n(declare-const memory {MEMORY})\n");
        for (name, width) in &self.variables {
            let _ = writeln!(text, "(declare-const {name} (_ BitVec {width}))");
        }
        format!("{text}{}(assert (= {claim} #b0))\n(check-sat)\n", self.text)
    }
}

const MEMORY: &str = "(Array (_ BitVec 32) (_ BitVec 8))";

fn binary(operator: BinaryOperator, one: &str, other: &str) -> String {
    let name = match operator {
        BinaryOperator::Add => "bvadd",
        BinaryOperator::Subtract => "bvsub",
        BinaryOperator::Multiply => "bvmul",
        BinaryOperator::And => "bvand",
        BinaryOperator::Or => "bvor",
        BinaryOperator::Xor => "bvxor",
        BinaryOperator::ShiftLeft => "bvshl",
        BinaryOperator::ShiftRight => "bvlshr",
        BinaryOperator::Equal => return format!("(ite (= {one} {other}) #b1 #b0)"),
        BinaryOperator::Less => return format!("(ite (bvult {one} {other}) #b1 #b0)"),
    };
    format!("({name} {one} {other})")
}
