//! The edits of a code section.

/// A distance inside new bytes that the engine fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditFixup {
    /// Position of the branch in the new bytes.
    pub at: u32,
    /// Offset in the old section of the branch's target instruction.
    pub target: u64,
}

/// The position of new bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditPosition {
    /// Before the instruction; labels and branches to it then refer to the new bytes.
    Before,
    /// After the instruction; labels after it stay after the new bytes.
    After,
    /// In place of the instruction and those after it, with that many bytes.
    Instead(u64),
    /// At the end of the section, after all instructions.
    End,
}

/// One edit; bytes and fix-ups are ranges of the lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeEdit {
    pub(crate) offset: u64,
    pub(crate) place: EditPosition,
    pub(crate) bytes: (u32, u32),
    pub(crate) fixups: (u32, u32),
}

/// An edit with its number in the list of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberedEdit {
    pub(crate) number: usize,
    pub(crate) edit: CodeEdit,
}

/// The edits of one code section, in any order; those at one offset stay in the order in which they were given.
#[derive(Debug, Clone, Default)]
pub struct CodeEdits {
    pub(crate) rows: Vec<CodeEdit>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) fixups: Vec<EditFixup>,
}

impl CodeEdits {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of edits.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Inserts instructions before the one at `offset` of the section: branches to it then reach the new ones first.
    /// Without any, only a clause that holds the instruction ends before it.
    pub fn insert_before(&mut self, offset: u64, bytes: &[u8], fixups: &[EditFixup]) {
        self.push(offset, EditPosition::Before, bytes, fixups);
    }

    /// Inserts instructions after the one at `offset`: branches to the next instruction skip them.
    pub fn insert_after(&mut self, offset: u64, bytes: &[u8], fixups: &[EditFixup]) {
        self.push(offset, EditPosition::After, bytes, fixups);
    }

    /// Replaces the instructions in `size` bytes at `offset`.
    pub fn replace(&mut self, offset: u64, size: u64, bytes: &[u8], fixups: &[EditFixup]) {
        self.push(offset, EditPosition::Instead(size), bytes, fixups);
    }

    /// Removes the instructions in `size` bytes at `offset`.
    pub fn remove(&mut self, offset: u64, size: u64) {
        self.push(offset, EditPosition::Instead(size), &[], &[]);
    }

    /// Appends bytes to the section, which has `size` bytes.
    pub(crate) fn append(&mut self, size: u64, bytes: &[u8]) {
        self.push(size, EditPosition::End, bytes, &[]);
    }

    fn push(&mut self, offset: u64, place: EditPosition, bytes: &[u8], fixups: &[EditFixup]) {
        let (start, first) = (self.bytes.len() as u32, self.fixups.len() as u32);
        self.bytes.extend_from_slice(bytes);
        self.fixups.extend_from_slice(fixups);
        let edit = CodeEdit {
            offset,
            place,
            bytes: (start, self.bytes.len() as u32),
            fixups: (first, self.fixups.len() as u32),
        };
        self.rows.push(edit);
    }

    pub(crate) fn bytes_of(&self, edit: &CodeEdit) -> &[u8] {
        &self.bytes[edit.bytes.0 as usize..edit.bytes.1 as usize]
    }

    pub(crate) fn fixups_of(&self, edit: &CodeEdit) -> &[EditFixup] {
        &self.fixups[edit.fixups.0 as usize..edit.fixups.1 as usize]
    }
}
