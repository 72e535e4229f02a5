//! MIOpen's databases of finished kernels (`.kdb`): SQLite with one table of code objects, each found by the name of its
//! source and by the options that it was compiled with, of which the last names the GPU.
//!
//! A code object is compressed by bzip2, or not if its row lacks a size. The row has the MD5 of the code object,
//! which MIOpen checks when it loads one.
//!
//! Invariants: what is written is read again. The output depends on the rows alone: rows keep their numbers, and free
//! pages of the input are not copied. A database of another form is refused with what was not understood: another
//! table, other columns, a row without a GPU or for another one, a hash that is not that of the content, content that a
//! program has not moved from its log (`-wal`) yet.
//!
//! Absent on purpose: making code objects (the caller's [`KernelMaker`]); databases of a user (`.ukdb`), which MIOpen
//! fills itself; other tables of MIOpen's, which hold no code.

use bzip2::Compression;
use bzip2::read::{BzDecoder, BzEncoder};
use hotswap_report::limit::Charge;
use hotswap_report::{Diagnostic, codes};
use md5::{Digest, Md5};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};
use std::io::Read;
use std::path::Path;

const TABLE: &str = "kern_db";
/// Its columns, in their order.
const COLUMNS: [&str; 6] = ["id", "kernel_name", "kernel_args", "kernel_blob", "kernel_hash", "uncompressed_size"];
/// As MIOpen makes it.
const SCHEMA: &str = "CREATE TABLE `kern_db` (`id` INTEGER PRIMARY KEY ASC,`kernel_name` TEXT NOT NULL,\
    `kernel_args` TEXT NOT NULL,`kernel_blob` BLOB NOT NULL,`kernel_hash` TEXT NOT NULL,\
    `uncompressed_size` INT NOT NULL);\
    CREATE UNIQUE INDEX `idx_kern_db` ON kern_db(kernel_name, kernel_args);";
/// The last option of a row.
const GPU_OPTION: &str = " -mcpu=";
/// Rows that are in memory at a time.
const BATCH: usize = 64;
/// More than any real name or list of options has.
const LONGEST_TEXT: usize = 1 << 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRow {
    pub id: i64,
    /// The file name of its source.
    pub name: String,
    /// The options that it was compiled with.
    pub options: String,
    /// The code object, or a bundle.
    pub code: Vec<u8>,
}

impl KernelRow {
    /// The GPU that the last option names, without its features.
    fn gpu_of_options(&self) -> Option<&str> {
        let (_, target) = self.options.rsplit_once(GPU_OPTION)?;
        let is_last = !target.is_empty() && !target.contains(char::is_whitespace);
        target.split(':').next().filter(|_| is_last)
    }

    /// The row's place in messages.
    fn row_place(&self) -> String {
        format!("kernel {} of row {}", self.name, self.id)
    }
}

/// The new code of a row.
pub type NewCode = Result<Option<Vec<u8>>, Vec<Diagnostic>>;

/// Makes the new code of a row; none where the database is not to have a row for it.
pub type KernelMaker<'m> = dyn Fn(&KernelRow) -> NewCode + Sync + 'm;

/// The change of a database.
pub struct DatabaseChange<'c> {
    /// The GPU that every row must name.
    pub source: &'c str,
    /// The GPU that the rows are to name; the source itself where the host sees its name.
    pub named: &'c str,
    pub maker: &'c KernelMaker<'c>,
}

/// The numbers of kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseCounts {
    /// In the new database.
    pub rows: usize,
    /// In the old one alone.
    pub left_out: usize,
}

/// Writes a changed copy of the database to `output`, where no file may be, and reads it again.
///
/// # Errors
/// [`codes::MALFORMED`] and [`codes::UNKNOWN_FORMAT`] for the input, those of the maker, and [`codes::CANNOT_WRITE`].
pub fn rewrite_database(
    input: &Path,
    output: &Path,
    change: &DatabaseChange<'_>,
) -> Result<DatabaseCounts, Vec<Diagnostic>> {
    let reader = DatabaseReader::open_database(input).map_err(single_database_error)?;
    let mut writer = DatabaseWriter::create_database(output).map_err(single_database_error)?;
    let (mut reasons, mut left_out) = (Vec::new(), 0);
    let (mut first, mut charge) = (Some(i64::MIN), Charge::default());
    while let Some(from) = first {
        let rows = reader.next_rows(from, &mut charge).map_err(single_database_error)?;
        first = rows.last().and_then(|last| last.id.checked_add(1));
        let made = hotswap_files::on_all_cores(rows.len(), |number| new_row(&rows[number], change));
        for row in made {
            match row {
                Ok(Some(row)) if reasons.is_empty() => writer.insert_row(&row).map_err(single_database_error)?,
                Ok(Some(_)) => {}
                Ok(None) => left_out += 1,
                Err(new) => reasons.extend(new),
            }
        }
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let written = writer.commit_and_close().map_err(single_database_error)?;
    check_written(output, written, change.named).map_err(single_database_error)?;
    Ok(DatabaseCounts { rows: written.rows, left_out })
}

fn single_database_error(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}

/// The row with another name and new code.
fn new_row(row: &KernelRow, change: &DatabaseChange<'_>) -> Result<Option<PackedRow>, Vec<Diagnostic>> {
    let options = renamed_options(row, change).map_err(|error| vec![in_kernel_row(error, row)])?;
    let code = (change.maker)(row);
    let code = code.map_err(|reasons| Vec::from_iter(reasons.into_iter().map(|reason| in_kernel_row(reason, row))))?;
    let Some(code) = code else { return Ok(None) };
    pack_row(KernelRow { options, code, ..row.clone() }).map(Some).map_err(|error| vec![in_kernel_row(error, row)])
}

fn in_kernel_row(mut error: Diagnostic, row: &KernelRow) -> Diagnostic {
    error.place.entry.get_or_insert_with(|| row.row_place());
    error
}

/// The options with the other GPU's name.
fn renamed_options(row: &KernelRow, change: &DatabaseChange<'_>) -> Result<String, Diagnostic> {
    match row.gpu_of_options() {
        Some(gpu) if gpu == change.source => {}
        Some(gpu) => return unknown_options_error(format!("the row is for {gpu}, the file for {}", change.source)),
        None => return unknown_options_error("the options do not end in `-mcpu=` and a GPU".to_owned()),
    }
    if change.named == change.source {
        return Ok(row.options.clone());
    }
    let (before, target) = row.options.rsplit_once(GPU_OPTION).unwrap_or_default();
    if before.contains(change.source) {
        return unknown_options_error(format!(
            "the options name {} in a place that HotSwap does not know",
            change.source
        ));
    }
    Ok(format!("{before}{GPU_OPTION}{}", target.replacen(change.source, change.named, 1)))
}

fn unknown_options_error(what: String) -> Result<String, Diagnostic> {
    Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what))
}

/// A row as it is stored.
struct PackedRow {
    row: KernelRow,
    blob: Vec<u8>,
    hash: String,
}

fn pack_row(row: KernelRow) -> Result<PackedRow, Diagnostic> {
    let mut blob = Vec::new();
    let packed = BzEncoder::new(row.code.as_slice(), Compression::best()).read_to_end(&mut blob);
    packed.map_err(|error| Diagnostic::error(codes::INTERNAL, format!("bzip2: {error}")))?;
    Ok(PackedRow { hash: md5_of_code(&row.code), row, blob })
}

fn md5_of_code(code: &[u8]) -> String {
    hotswap_report::hex_digits(&Md5::digest(code))
}

/// An open database of kernels, which nothing changes.
struct DatabaseReader {
    connection: Connection,
}

impl DatabaseReader {
    fn open_database(path: &Path) -> Result<Self, Diagnostic> {
        reject_unfinished(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(read_only_uri(path), flags).map_err(|error| damaged_database(&error))?;
        let reader = Self { connection };
        reader.distrust_schema().map_err(|error| damaged_database(&error))?;
        reader.check_form()?;
        Ok(reader)
    }

    /// The schema of a file is not a reason to run anything.
    fn distrust_schema(&self) -> rusqlite::Result<()> {
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        self.connection.pragma_update(None, "cell_size_check", true)
    }

    /// One table with the known columns, and pages that fit together.
    fn check_form(&self) -> Result<(), Diagnostic> {
        let tables = list_schema_column(
            "SELECT name FROM sqlite_schema WHERE type != 'index' AND name NOT LIKE 'sqlite_%' ORDER BY name",
            self,
        )?;
        if tables != [TABLE] {
            return unknown_form_error(format!(
                "the database has the tables `{}`, and not `{TABLE}` alone",
                tables.join(", ")
            ));
        }
        let columns = list_schema_column("SELECT name FROM pragma_table_info('kern_db') ORDER BY cid", self)?;
        if columns != COLUMNS {
            return unknown_form_error(format!("the table `{TABLE}` has the columns {}", columns.join(", ")));
        }
        let state = list_schema_column("PRAGMA quick_check(1)", self)?;
        match state.first().map(String::as_str) {
            Some("ok") => Ok(()),
            other => Err(malformed_database(format!("the database is damaged: {}", other.unwrap_or("no answer")))),
        }
    }

    fn list_column(&self, query: &str) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect()
    }

    /// The next rows from that number on.
    fn next_rows(&self, from: i64, charge: &mut Charge) -> Result<Vec<KernelRow>, Diagnostic> {
        let query = "SELECT id, kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size FROM kern_db \
            WHERE id >= ?1 ORDER BY id LIMIT ?2";
        let mut statement = self.connection.prepare(query).map_err(|error| damaged_database(&error))?;
        let mut rows = statement.query(params![from, BATCH as i64]).map_err(|error| damaged_database(&error))?;
        let mut batch = Vec::new();
        while let Some(row) = rows.next().map_err(|error| damaged_database(&error))? {
            batch.push(unpack_row(row, charge)?);
        }
        Ok(batch)
    }
}

fn unknown_form_error(what: String) -> Result<(), Diagnostic> {
    Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what))
}

fn list_schema_column(query: &str, reader: &DatabaseReader) -> Result<Vec<String>, Diagnostic> {
    reader.list_column(query).map_err(|error| damaged_database(&error))
}

/// Reads a row, and compares its code with size and hash.
fn unpack_row(row: &rusqlite::Row<'_>, charge: &mut Charge) -> Result<KernelRow, Diagnostic> {
    let id: i64 = row.get(0).map_err(|error| damaged_database(&error))?;
    let (name, options, expected) =
        (read_text_column(1, row, id)?, read_text_column(2, row, id)?, read_text_column(4, row, id)?);
    let stored = row.get_ref(3).ok().and_then(|value| value.as_blob().ok());
    let stored = stored.ok_or_else(|| malformed_database(format!("row {id}: kernel_blob is no bytes")))?;
    let size: i64 = row.get(5).map_err(|error| malformed_database(format!("row {id}: {error}")))?;
    let mut row = KernelRow { id, name, options, code: Vec::new() };
    let code = code_of(stored, size, charge).map_err(|one| unpack_row_error(one, &row))?;
    if !md5_of_code(&code).eq_ignore_ascii_case(&expected) {
        return Err(unpack_row_error(malformed_database("its MD5 is not that of its content".to_owned()), &row));
    }
    row.code = code;
    Ok(row)
}

fn read_text_column(column: usize, row: &rusqlite::Row<'_>, id: i64) -> Result<String, Diagnostic> {
    let text: String = row.get(column).map_err(|error| malformed_database(format!("row {id}: {error}")))?;
    let is_short = text.len() <= LONGEST_TEXT;
    if is_short {
        Ok(text)
    } else {
        Err(malformed_database(format!("row {id}: {} has {} bytes", COLUMNS[column], text.len())))
    }
}

fn unpack_row_error(error: Diagnostic, row: &KernelRow) -> Diagnostic {
    error.in_entry(row.row_place())
}

/// The code object of a stored one; size 0 says that it is not compressed.
fn code_of(stored: &[u8], size: i64, charge: &mut Charge) -> Result<Vec<u8>, Diagnostic> {
    let size = u64::try_from(size).map_err(|_| malformed_database(format!("its size is {size}")))?;
    if size == 0 {
        return Ok(stored.to_vec());
    }
    charge.add(stored.len(), size)?;
    let mut code = Vec::new();
    // One byte more than it may have, so that a longer one is seen.
    let read = BzDecoder::new(stored).take(size + 1).read_to_end(&mut code);
    read.map_err(|error| malformed_database(format!("bzip2: {error}")))?;
    if code.len() as u64 != size {
        return Err(malformed_database(format!("it has other than the {size} bytes that its row states")));
    }
    Ok(code)
}

/// The number of rows that were written, and all of their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    rows: usize,
    content: [u8; 16],
}

/// Sums up the content of rows.
#[derive(Default)]
struct WrittenSum {
    rows: usize,
    state: Md5,
}

impl WrittenSum {
    fn add_row(&mut self, row: &KernelRow) {
        self.rows += 1;
        for part in [&row.id.to_le_bytes()[..], row.name.as_bytes(), row.options.as_bytes(), &row.code] {
            self.state.update(part.len().to_le_bytes());
            self.state.update(part);
        }
    }

    fn finish_sum(self) -> Written {
        Written { rows: self.rows, content: self.state.finalize().into() }
    }
}

/// A new database, written in one transaction.
struct DatabaseWriter {
    connection: Connection,
    sum: WrittenSum,
}

impl DatabaseWriter {
    fn create_database(path: &Path) -> Result<Self, Diagnostic> {
        let connection = open_new_database(path).map_err(|error| not_written(&error))?;
        Ok(Self { connection, sum: WrittenSum::default() })
    }

    fn insert_row(&mut self, packed: &PackedRow) -> Result<(), Diagnostic> {
        let PackedRow { row, blob, hash } = packed;
        let size = i64::try_from(row.code.len()).unwrap_or(i64::MAX);
        execute_row_insert(&self.connection, row, blob, hash, size).map_err(|error| not_written(&error))?;
        self.sum.add_row(row);
        Ok(())
    }

    fn commit_and_close(self) -> Result<Written, Diagnostic> {
        self.connection.execute_batch("COMMIT").map_err(|error| not_written(&error))?;
        self.connection.close().map_err(|(_, error)| not_written(&error))?;
        Ok(self.sum.finish_sum())
    }
}

fn open_new_database(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open(path)?;
    // The file is not named before it is complete and read again.
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.execute_batch(SCHEMA)?;
    connection.execute_batch("BEGIN")?;
    Ok(connection)
}

fn execute_row_insert(
    connection: &Connection,
    row: &KernelRow,
    blob: &[u8],
    hash: &str,
    size: i64,
) -> Result<usize, rusqlite::Error> {
    let mut statement = connection.prepare("INSERT INTO kern_db VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
    statement.execute(params![row.id, row.name, row.options, blob, hash, size])
}

/// Reads what was written.
fn check_written(path: &Path, written: Written, named: &str) -> Result<(), Diagnostic> {
    let reader = DatabaseReader::open_database(path).map_err(|error| new_database_error(error.to_string()))?;
    let (mut first, mut charge, mut sum) = (Some(i64::MIN), Charge::default(), WrittenSum::default());
    while let Some(from) = first {
        let rows = reader.next_rows(from, &mut charge).map_err(|error| new_database_error(error.to_string()))?;
        first = rows.last().and_then(|last| last.id.checked_add(1));
        if let Some(other) = rows.iter().find(|row| row.gpu_of_options() != Some(named)) {
            return Err(new_database_error(format!("{} is not for {named}", other.row_place())));
        }
        rows.iter().for_each(|row| sum.add_row(row));
    }
    if sum.finish_sum() == written {
        Ok(())
    } else {
        Err(new_database_error("its rows are not those that were written".to_owned()))
    }
}

fn new_database_error(what: String) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, format!("the new database: {what}"))
}

/// A log beside the database has rows that are not in it yet.
fn reject_unfinished(path: &Path) -> Result<(), Diagnostic> {
    for end in ["-wal", "-journal"] {
        let mut log = path.as_os_str().to_owned();
        log.push(end);
        let size = match std::fs::metadata(&log) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(Diagnostic::cannot_read(&log, error)),
        };
        if size > 0 {
            let what =
                format!("a program has not finished to change the database: there is a {}", Path::new(&log).display());
            return Err(malformed_database(what).advise("end the programs that use it, and open it once by `sqlite3`"));
        }
    }
    Ok(())
}

/// The path for SQLite, which is to take no locks and to make no files.
fn read_only_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

fn malformed_database(what: String) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what)
}

fn damaged_database(error: &rusqlite::Error) -> Diagnostic {
    malformed_database(format!("the database cannot be read: {error}"))
}

fn not_written(error: &rusqlite::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, format!("the new database: {error}"))
}
