//! Executables: variables that are defined, code objects that are loaded, symbols.
//!
//! Invariants: a frozen executable does not change. A symbol's name occurs once for an agent.

use super::object_image::{ImageSymbol, LoadRefusal, ObjectImage};
use super::placement::PlacedImage;
use crate::abi::AgentHandle;
use crate::devices::gpu_of;
use crate::handles::HandleTable;
use crate::status::HsaStatus;
use hotswap_code_object::SourceLines;
use hotswap_targets::TargetId;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};

/// The bytes of a code object while it is loaded, and where the program has them.
#[derive(Debug, Clone)]
pub(crate) struct CodeReader {
    pub(crate) bytes: Arc<[u8]>,
    /// The program's own memory, which tools read: it stays while the executable lives.
    pub(crate) storage: u64,
}

/// A code object of an executable.
#[derive(Debug)]
pub(crate) struct LoadedObject {
    pub(crate) agent: AgentHandle,
    pub(crate) executable: u64,
    pub(crate) reader: CodeReader,
    pub(crate) placed: PlacedImage,
    pub(crate) image: ObjectImage,
}

/// A kernel: what messages say of it.
#[derive(Debug)]
pub(crate) struct LoadedKernel {
    /// Its name, without `.kd`.
    pub(crate) name: String,
    pub(crate) object: Arc<LoadedObject>,
}

/// A symbol: of a loaded code object, or defined by the program.
#[derive(Debug, Clone)]
pub(crate) struct ExecutableSymbol {
    pub(crate) name: String,
    pub(crate) agent: Option<AgentHandle>,
    /// Address in the memory of this process.
    pub(crate) address: u64,
    /// The symbol of the code object; `None` for a variable of the program.
    pub(crate) image: Option<(Arc<LoadedObject>, ImageSymbol)>,
}

#[derive(Debug, Default)]
struct ExecutableState {
    is_frozen: bool,
    objects: Vec<(u64, Arc<LoadedObject>)>,
    /// Handles of symbols by name and agent.
    symbols: BTreeMap<(String, Option<AgentHandle>), u64>,
}

#[derive(Debug)]
pub(crate) struct DeviceExecutable {
    pub(crate) profile: u32,
    pub(crate) rounding: u32,
    state: Mutex<ExecutableState>,
}

pub(super) static EXECUTABLES: LazyLock<HandleTable<DeviceExecutable>> = LazyLock::new(|| HandleTable::new(0x52));
pub(super) static READERS: LazyLock<HandleTable<CodeReader>> = LazyLock::new(|| HandleTable::new(0x53));
pub(super) static OBJECTS: LazyLock<HandleTable<LoadedObject>> = LazyLock::new(|| HandleTable::new(0x54));
pub(super) static SYMBOLS: LazyLock<HandleTable<ExecutableSymbol>> = LazyLock::new(|| HandleTable::new(0x55));
/// Kernels by the address of their descriptor.
static KERNELS: RwLock<BTreeMap<u64, Arc<LoadedKernel>>> = RwLock::new(BTreeMap::new());

/// The kernel whose descriptor is at that address.
pub(crate) fn kernel_at(descriptor: u64) -> Option<Arc<LoadedKernel>> {
    KERNELS.read().unwrap_or_else(PoisonError::into_inner).get(&descriptor).cloned()
}

/// The code object whose memory has that address.
pub(crate) fn object_at(address: u64) -> Option<(u64, Arc<LoadedObject>)> {
    OBJECTS.sorted_objects().into_iter().find(|(_, object)| object_holds_address(object, address))
}

fn object_holds_address(object: &LoadedObject, address: u64) -> bool {
    address.wrapping_sub(object.placed.base) < object.placed.size
}

impl LoadedObject {
    /// An address in memory as a function of the object and a distance.
    pub(crate) fn describe_address(&self, address: u64) -> Option<String> {
        let own = address.wrapping_sub(self.placed.delta);
        let function = self.image.functions.iter().find(|one| image_symbol_holds(one, own))?;
        Some(format!("{}+0x{:x}", function.name, own - function.address))
    }

    /// The line of the source that an address in memory was compiled from, where the object has such tables.
    pub(crate) fn source_line(&self, address: u64) -> Option<String> {
        SourceLines::of_address(&self.reader.bytes, address.wrapping_sub(self.placed.delta))
    }
}

fn image_symbol_holds(symbol: &&ImageSymbol, own: u64) -> bool {
    own.wrapping_sub(symbol.address) < symbol.size.max(1)
}

/// Whether code for one target runs on a device with another one.
fn runs_on(code: &TargetId, device: &TargetId) -> bool {
    (code.processor == device.processor || code.processor.covers(device.processor))
        && is_feature_compatible(code.xnack, device.xnack)
        && is_feature_compatible(code.sramecc, device.sramecc)
}

fn is_feature_compatible(code: Option<bool>, device: Option<bool>) -> bool {
    code.is_none() || code == device
}

impl DeviceExecutable {
    pub(super) fn new(profile: u32, rounding: u32) -> Self {
        Self { profile, rounding, state: Mutex::default() }
    }

    fn lock_state(&self) -> MutexGuard<'_, ExecutableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_unfrozen(&self) -> Result<MutexGuard<'_, ExecutableState>, HsaStatus> {
        let state = self.lock_state();
        if state.is_frozen { Err(HsaStatus::FROZEN_EXECUTABLE) } else { Ok(state) }
    }

    pub(super) fn freeze(&self) -> Result<(), HsaStatus> {
        self.lock_unfrozen()?.is_frozen = true;
        Ok(())
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.lock_state().is_frozen
    }

    /// Defines a variable of the program, for one agent or all.
    pub(super) fn define_variable(
        &self,
        name: String,
        agent: Option<AgentHandle>,
        address: u64,
    ) -> Result<(), HsaStatus> {
        let mut state = self.lock_unfrozen()?;
        if state.symbols.contains_key(&(name.clone(), agent)) {
            return Err(HsaStatus::VARIABLE_ALREADY_DEFINED);
        }
        let symbol = ExecutableSymbol { name: name.clone(), agent, address, image: None };
        state.symbols.insert((name, agent), SYMBOLS.add(symbol));
        Ok(())
    }

    /// Loads a code object for an agent.
    pub(super) fn load_object(&self, own: u64, agent: AgentHandle, reader: &CodeReader) -> Result<u64, LoadRefusal> {
        let gpu = gpu_of(agent).map_err(load_status_refusal)?;
        let mut state = self.lock_unfrozen().map_err(load_status_refusal)?;
        let use_dynsym =
            std::env::var_os("LOADER_USE_DYNSYM").is_some_and(|text| !text.as_encoded_bytes().starts_with(b"0"));
        let image = ObjectImage::parse(&reader.bytes, use_dynsym)?;
        if !runs_on(&image.target, &gpu.target) {
            let reason = format!("it is for {}, the GPU is {}", image.target, gpu.target);
            return Err(LoadRefusal { status: HsaStatus::INCOMPATIBLE_ARGUMENTS, reason });
        }
        let placed = PlacedImage::new(&image, &reader.bytes, |name| state.variable_address(name, agent))?;
        let object = Arc::new(LoadedObject { agent, executable: own, reader: reader.clone(), placed, image });
        state.add_symbols(&object)?;
        let handle = OBJECTS.add_shared(object.clone());
        state.objects.push((handle, object));
        Ok(handle)
    }

    pub(super) fn object_handles(&self) -> Vec<u64> {
        self.lock_state().objects.iter().map(|(handle, _)| *handle).collect()
    }

    pub(super) fn symbol_handle(&self, name: &str, agent: Option<AgentHandle>) -> Option<u64> {
        let state = self.lock_state();
        symbol_handle_of_agent(agent, &state, name).or_else(|| symbol_handle_of_agent(None, &state, name))
    }

    /// Handles and agents of all symbols.
    pub(super) fn symbol_handles(&self) -> Vec<(u64, Option<AgentHandle>)> {
        self.lock_state().symbols.iter().map(|((_, agent), handle)| (*handle, *agent)).collect()
    }

    pub(super) fn destroy(&self) {
        let mut state = self.lock_state();
        for handle in std::mem::take(&mut state.symbols).into_values() {
            if let Some(symbol) = SYMBOLS.remove(handle) {
                KERNELS.write().unwrap_or_else(PoisonError::into_inner).remove(&symbol.address);
            }
        }
        for (handle, _) in std::mem::take(&mut state.objects) {
            OBJECTS.remove(handle);
        }
    }
}

fn load_status_refusal(status: HsaStatus) -> LoadRefusal {
    LoadRefusal { status, reason: status_reason(status) }
}

fn symbol_handle_of_agent(
    agent: Option<AgentHandle>,
    state: &MutexGuard<'_, ExecutableState>,
    name: &str,
) -> Option<u64> {
    state.symbols.get(&(name.to_owned(), agent)).copied()
}

fn status_reason(status: HsaStatus) -> String {
    match status {
        HsaStatus::FROZEN_EXECUTABLE => "the executable is frozen".to_owned(),
        _ => "the agent is no GPU".to_owned(),
    }
}

impl ExecutableState {
    /// The address of a variable for an agent.
    fn variable_address(&self, name: &str, agent: AgentHandle) -> Option<u64> {
        let handle = [Some(agent), None].into_iter().find_map(|agent| self.symbols.get(&(name.to_owned(), agent)))?;
        SYMBOLS.get(*handle).map(|symbol| symbol.address)
    }

    fn add_symbols(&mut self, object: &Arc<LoadedObject>) -> Result<(), LoadRefusal> {
        let agent = Some(object.agent);
        let mut symbols = object.image.symbols.iter();
        if let Some(twice) = symbols.find(|symbol| self.symbols.contains_key(&(symbol.name.clone(), agent))) {
            let reason = format!("`{}` is defined already", twice.name);
            return Err(LoadRefusal { status: HsaStatus::VARIABLE_ALREADY_DEFINED, reason });
        }
        for symbol in &object.image.symbols {
            let address = symbol.address.wrapping_add(object.placed.delta);
            if let Some(name) = symbol.name.strip_suffix(".kd") {
                let kernel = LoadedKernel { name: name.to_owned(), object: object.clone() };
                KERNELS.write().unwrap_or_else(PoisonError::into_inner).insert(address, Arc::new(kernel));
            }
            let image = Some((object.clone(), symbol.clone()));
            let made = ExecutableSymbol { name: symbol.name.clone(), agent, address, image };
            self.symbols.insert((symbol.name.clone(), agent), SYMBOLS.add(made));
        }
        Ok(())
    }
}
