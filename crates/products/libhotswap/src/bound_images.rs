//! A code object that imports functions and the ones that export them: what `hotswap bind` does with files.
//!
//! Invariant: nothing is defined for a loader while a kernel would run with too little or imports lack a provider.

use crate::call_error::{CallError, c_string};
use crate::device_image::DeviceImage;
use crate::make::MadeCode;
use crate::worker_threads::run_parallel;
use hotswap_device_link::{Binding, BoundObject, KernelBudget, bind};
use hotswap_report::{Diagnostic, Severity};
use std::ffi::CString;
use std::sync::Arc;

/// The result behind a `hotswap_binding`: a user, and the libraries that provide its imports.
#[derive(Debug)]
pub struct BoundImages {
    user: Arc<DeviceImage>,
    pub(crate) libraries: usize,
    pub(crate) binding: Binding,
    /// Symbol and function of each bound import.
    pub(crate) imports: Vec<[CString; 2]>,
    /// Each kernel that has too little, and the function that forces its numbers.
    pub(crate) budgets: Vec<[CString; 2]>,
    pub(crate) problems: Vec<CString>,
    refusals: Vec<Diagnostic>,
}

fn bound_object(name: String, image: &DeviceImage) -> Result<BoundObject<'_>, CallError> {
    Ok(BoundObject { name, bytes: image.bytes(), table: &image.index()?.table })
}

impl BoundImages {
    pub(crate) fn new(user: Arc<DeviceImage>, libraries: &[Arc<DeviceImage>]) -> Result<Self, CallError> {
        let named = libraries.iter().enumerate();
        let objects: Vec<_> =
            named.map(|(number, image)| bound_object(format!("library {number}"), image)).collect::<Result<_, _>>()?;
        let own = bound_object("the image".to_owned(), &user)?;
        let binding = run_parallel(|| bind(&own, &objects))??;
        let problems = binding.problems();
        Ok(Self {
            libraries: libraries.len(),
            imports: binding
                .imports
                .iter()
                .map(|one| [image_c_string(&one.symbol), image_c_string(&one.function)])
                .collect(),
            budgets: binding
                .report
                .short
                .iter()
                .map(|one| [image_c_string(&one.kernel), image_c_string(&one.forced_by)])
                .collect(),
            problems: problems.iter().map(|one| c_string(one.to_string())).collect(),
            refusals: problems.into_iter().filter(|one| one.severity == Severity::Error).collect(),
            user,
            binding,
        })
    }

    pub(crate) fn is_loadable(&self) -> bool {
        self.refusals.is_empty()
    }

    /// A copy whose kernels have what they need.
    pub(crate) fn prepared_copy(&self) -> Result<MadeCode, CallError> {
        let bytes = run_parallel(|| self.binding.prepared_file(self.user.bytes()))??;
        let lines: Vec<String> =
            self.binding.report.short.iter().map(|one| KernelBudget::raised_note(one).what).collect();
        Ok(MadeCode { bytes, report: c_string(lines.join("\n")) })
    }

    /// The address of each import, where the libraries are loaded with these distances from their files' addresses.
    pub(crate) fn import_addresses(&self, deltas: &[i64]) -> Result<Vec<ImportAddress<'_>>, CallError> {
        if !self.is_loadable() {
            return Err(CallError::of_all(&self.refusals));
        }
        if deltas.len() != self.libraries {
            let what = format!("{} load deltas for {} libraries", deltas.len(), self.libraries);
            return Err(CallError::invalid_argument(what));
        }
        let rows = self.binding.imports.iter().zip(&self.imports);
        Ok(rows
            .map(|(one, [symbol, _])| ImportAddress {
                symbol,
                address: one.address.wrapping_add_signed(deltas[one.library]),
            })
            .collect())
    }
}

/// An import that a loader defines.
pub(crate) struct ImportAddress<'b> {
    pub(crate) symbol: &'b CString,
    /// The address of the function as loaded.
    pub(crate) address: u64,
}

fn image_c_string(text: &str) -> CString {
    c_string(text)
}
