//! Device links of separately compiled objects: whether each kernel is launched with what the functions that it calls need.
//!
//! The compiler sees a kernel alone, and no linker changes kernel descriptors. So a kernel gets the registers and the
//! scratch of its own code, and its callee overwrites what belongs to other waves. [`check`] adds the needs up over the call
//! graph of the linked file, [`raised`] writes them into descriptor and metadata.
//!
//! | module | task |
//! | --- | --- |
//! | `inputs` | the linker's inputs: objects, members of archives, the compiler's records in them |
//! | `budget` | what kernels have, and what they need |
//! | `granted` | what the hardware grants for the numbers of a descriptor |
//! | `raise` | descriptors and metadata with more |
//! | `lds` | LDS of functions that were compiled apart from a kernel |
//! | `exports` | functions that a link offers to other code objects, or takes from them |
//! | `stub` | objects that stand for functions of other code objects |
//! | `binding` | code objects that are loaded together: who provides what, and budgets over all of them |
//! | `convention` | objects whose calling conventions do not fit each other |
//!
//! Invariants: numbers are raised, never lowered. Where not all functions that a kernel reaches are known, its numbers
//! are lower bounds, and that is said. What cannot be raised is an error, not a smaller number.
//!
//! Absent on purpose: the call graph and the registers of functions (`hotswap-device-symbols`); running a linker, and
//! policies (the interposer).

mod binding;
mod budget;
mod convention;
mod exports;
mod granted;
mod inputs;
mod lds;
mod raise;
mod stub;

pub use binding::{Binding, BoundImport, bind};
pub use budget::{DynamicStack, KernelBudget, LinkReport, StackRules, UnboundedScratch, check_link};
pub use exports::{check_exports, check_imports};
pub use granted::LaunchNumbers;
pub use inputs::{BoundObject, LinkInput, link_inputs};
pub use raise::raise_kernels;
pub use stub::import_stub;
