//! Agents, their instruction sets, waves and caches, as functions of HSA.
//!
//! A GPU has one instruction set: HIP refuses a device with another number of them.
#![allow(unsafe_code)] // the functions of HSA's interface

use crate::abi::{AgentHandle, CacheHandle, GridExtent, IsaHandle, Visitor, WavefrontHandle};
use crate::agent_handles::{HOST, isa_of};
use crate::boundary::{caller_text, hsa_api, put_as, put_bytes, put_result, visit_all};
use crate::devices::{check_agent, emulated_system, gpu_of, gpu_of_isa};
use crate::gpu::{EmulatedGpu, MAX_GROUP, host_attribute};
use crate::product::reported_wave;
use crate::status::HsaStatus;
use hotswap_targets::WaveSizes;
use std::ffi::{c_char, c_void};

/// A cache: its GPU in the upper bits, its level below.
fn agent_caches(gpu: &EmulatedGpu) -> impl Iterator<Item = CacheHandle> {
    let levels = if gpu.product.caches.1 == 0 { 2 } else { 3 };
    let agent = gpu.agent();
    (1..=levels).map(move |level| CacheHandle(agent.0 << 8 | level))
}

fn cache_size(cache: CacheHandle) -> Result<(u8, u32), HsaStatus> {
    let gpu = gpu_of(AgentHandle(cache.0 >> 8)).map_err(|_| HsaStatus::INVALID_CACHE)?;
    let sizes = [16 << 10, gpu.product.caches.0 << 10, gpu.product.caches.1 << 10];
    let level = (cache.0 & 0xff) as u8;
    let size = sizes.get(usize::from(level).wrapping_sub(1)).ok_or(HsaStatus::INVALID_CACHE)?;
    Ok((level, *size))
}

/// A wave size as a handle: the ISA above, the lanes below.
fn wavefront_sizes(isa: IsaHandle, gpu: &EmulatedGpu) -> impl Iterator<Item = WavefrontHandle> {
    let sizes: &[u64] = match gpu.target.processor.waves {
        WaveSizes::Only32 => &[32],
        WaveSizes::Only64 => &[64],
        WaveSizes::Both => &[32, 64],
    };
    sizes.iter().map(move |lanes| WavefrontHandle(isa.0 << 8 | lanes))
}

hsa_api! {
    fn hsa_agent_get_info(agent: AgentHandle, attribute: u32, value: *mut c_void) {
        let answer = if agent == HOST { host_attribute(attribute) } else { gpu_of(agent)?.agent_info(attribute) };
        put_bytes(value, &answer.ok_or(HsaStatus::INVALID_ARGUMENT)?.to_bytes())
    }

    fn hsa_agent_iterate_isas(agent: AgentHandle, visit: Option<Visitor<IsaHandle>>, data: *mut c_void) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        visit(isa_of(gpu_of(agent)?.number), data).into_answer()
    }

    fn hsa_agent_iterate_caches(agent: AgentHandle, visit: Option<Visitor<CacheHandle>>, data: *mut c_void) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        check_agent(agent)?;
        let Ok(gpu) = gpu_of(agent) else { return Ok(()) };
        visit_all(agent_caches(gpu), |cache| visit(cache, data))
    }

    fn hsa_cache_get_info(cache: CacheHandle, attribute: u32, value: *mut c_void) {
        let (level, size) = cache_size(cache)?;
        let name = format!("L{level}");
        match attribute {
            0 => put_as(value, name.len() as u32),
            1 => put_bytes(value, name.as_bytes()),
            2 => put_as(value, level),
            3 => put_as(value, size),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }

    fn hsa_agent_get_exception_policies(agent: AgentHandle, _profile: u32, mask: *mut u16) {
        gpu_of(agent)?;
        put_result(mask, 0u16)
    }

    fn hsa_isa_from_name(name: *const c_char, isa: *mut IsaHandle) {
        let wanted = caller_text(name)?;
        let found = emulated_system()?.gpus.iter().find(|gpu| gpu.isa_name() == wanted);
        put_result(isa, isa_of(found.ok_or(HsaStatus::INVALID_ISA_NAME)?.number))
    }

    fn hsa_isa_get_info(isa: IsaHandle, attribute: u32, _index: u32, value: *mut c_void) {
        isa_attribute(isa, attribute, value)
    }

    fn hsa_isa_get_info_alt(isa: IsaHandle, attribute: u32, value: *mut c_void) {
        isa_attribute(isa, attribute, value)
    }

    fn hsa_isa_get_exception_policies(isa: IsaHandle, _profile: u32, mask: *mut u16) {
        gpu_of_isa(isa)?;
        put_result(mask, 0u16)
    }

    fn hsa_isa_get_round_method(isa: IsaHandle, _kind: u32, _flush: u32, method: *mut u32) {
        gpu_of_isa(isa)?;
        put_result(method, 1u32)
    }

    fn hsa_isa_iterate_wavefronts(isa: IsaHandle, visit: Option<Visitor<WavefrontHandle>>, data: *mut c_void) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        visit_all(wavefront_sizes(isa, gpu_of_isa(isa)?), |wave| visit(wave, data))
    }

    fn hsa_wavefront_get_info(wave: WavefrontHandle, attribute: u32, value: *mut c_void) {
        let gpu = gpu_of_isa(IsaHandle(wave.0 >> 8)).map_err(|_| HsaStatus::INVALID_WAVEFRONT)?;
        match gpu.target.processor.waves.contains(wave.0 & 0xff) && attribute == 0 {
            true => put_as(value, (wave.0 & 0xff) as u32),
            false => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }

    fn hsa_isa_compatible(code: IsaHandle, agent: IsaHandle, result: *mut bool) {
        let (code, agent) = (gpu_of_isa(code)?, gpu_of_isa(agent)?);
        put_result(result, code.target == agent.target)
    }

    fn hsa_amd_coherency_get_type(agent: AgentHandle, kind: *mut u32) {
        gpu_of(agent)?;
        put_result(kind, 0u32)
    }

    fn hsa_amd_coherency_set_type(agent: AgentHandle, _kind: u32) {
        gpu_of(agent).map(drop)
    }

    fn hsa_amd_agent_set_async_scratch_limit(agent: AgentHandle, _threshold: usize) {
        gpu_of(agent).map(drop)
    }

    fn hsa_amd_profiling_convert_tick_to_system_domain(agent: AgentHandle, tick: u64, system_tick: *mut u64) {
        gpu_of(agent)?;
        // There is one clock.
        put_result(system_tick, tick)
    }
}

/// # Safety
/// `value` has room for the attribute.
unsafe fn isa_attribute(isa: IsaHandle, attribute: u32, value: *mut c_void) -> Result<(), HsaStatus> {
    let gpu = gpu_of_isa(isa)?;
    let name = gpu.isa_name();
    let limits = &gpu.target.processor.limits;
    let waves = u32::from(limits.waves_per_simd) * u32::from(limits.simds_per_cu);
    // SAFETY: the types are those of HSA's headers; the caller has room for them.
    unsafe {
        match attribute {
            0 => put_as(value, name.len() as u32 + 1),
            1 => put_bytes(value, format!("{name}\0").as_bytes()),
            2 => put_as(value, 1u32),
            3 => put_as(value, reported_wave(gpu.target.processor)),
            4 => put_as(value, waves),
            // The large machine model; the base profile; rounding to nearest.
            5 => put_as(value, [false, true]),
            6 => put_as(value, [true, false]),
            7 | 8 => put_as(value, [false, false, true]),
            9 => put_as(value, true),
            12 => put_as(value, [MAX_GROUP as u16; 3]),
            13 => put_as(value, MAX_GROUP),
            14 => put_as(value, GridExtent { x: i32::MAX as u32, y: u32::from(u16::MAX), z: u32::from(u16::MAX) }),
            16 => put_as(value, u64::from(u32::MAX)),
            17 => put_as(value, 32u32),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }
}
