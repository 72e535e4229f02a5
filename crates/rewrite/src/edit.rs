//! What is to change.

/// A distance inside new bytes that the engine fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixup {
    /// Where in the new bytes the branch stands.
    pub at: u32,
    /// Offset in the section, as it was, of the instruction that the branch goes to.
    pub target: u64,
}

/// Where new bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// Before the instruction; labels and branches to it come to the new bytes first.
    Before,
    /// Behind the instruction; labels behind it stay behind the new bytes.
    After,
    /// In its place and that of those behind it, so many bytes.
    Instead(u64),
    /// Behind everything in the section: no instruction stands there.
    End,
}

/// One edit; bytes and fix-ups are ranges of the lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit {
    pub(crate) offset: u64,
    pub(crate) place: Where,
    pub(crate) bytes: (u32, u32),
    pub(crate) fixups: (u32, u32),
}

/// The edits of one code section, in any order; those at one place stay in the order in which they were given.
#[derive(Debug, Clone, Default)]
pub struct Edits {
    pub(crate) rows: Vec<Edit>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) fixups: Vec<Fixup>,
}

impl Edits {
    /// No edits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Puts instructions before the one at `offset` of the section: what goes to it goes to them.
    pub fn before(&mut self, offset: u64, bytes: &[u8], fixups: &[Fixup]) {
        self.push(offset, Where::Before, bytes, fixups);
    }

    /// Puts instructions behind the one at `offset`: what goes to the next instruction passes them by.
    pub fn after(&mut self, offset: u64, bytes: &[u8], fixups: &[Fixup]) {
        self.push(offset, Where::After, bytes, fixups);
    }

    /// Puts instructions in the place of those in `size` bytes at `offset`.
    pub fn replace(&mut self, offset: u64, size: u64, bytes: &[u8], fixups: &[Fixup]) {
        self.push(offset, Where::Instead(size), bytes, fixups);
    }

    /// Takes the instructions in `size` bytes at `offset` away.
    pub fn remove(&mut self, offset: u64, size: u64) {
        self.push(offset, Where::Instead(size), &[], &[]);
    }

    /// Puts bytes behind all others of the section, which has `size` bytes.
    pub(crate) fn append(&mut self, size: u64, bytes: &[u8]) {
        self.push(size, Where::End, bytes, &[]);
    }

    fn push(&mut self, offset: u64, place: Where, bytes: &[u8], fixups: &[Fixup]) {
        let (start, first) = (self.bytes.len() as u32, self.fixups.len() as u32);
        self.bytes.extend_from_slice(bytes);
        self.fixups.extend_from_slice(fixups);
        let edit =
            Edit { offset, place, bytes: (start, self.bytes.len() as u32), fixups: (first, self.fixups.len() as u32) };
        self.rows.push(edit);
    }

    pub(crate) fn bytes_of(&self, edit: &Edit) -> &[u8] {
        &self.bytes[edit.bytes.0 as usize..edit.bytes.1 as usize]
    }

    pub(crate) fn fixups_of(&self, edit: &Edit) -> &[Fixup] {
        &self.fixups[edit.fixups.0 as usize..edit.fixups.1 as usize]
    }
}
