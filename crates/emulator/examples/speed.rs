use hotswap_emulator::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut memory = SparseMemory::new();
    let loaded = LoadedObject::load(&std::fs::read(&a[2]).unwrap(), &mut memory).unwrap();
    let k = loaded.kernel("run").unwrap();
    let input = memory.allocate(1 << 20);
    let out = memory.allocate(1 << 22);
    let items: u32 = a[3].parse().unwrap();
    let group: u16 = a[4].parse().unwrap();
    let mut device = EmulatedDevice::new(&a[1]).unwrap();
    device.threads = a[5].parse().unwrap();
    let args = [input.to_le_bytes().to_vec(), out.to_le_bytes().to_vec(), items.to_le_bytes().to_vec()];
    let req = DirectLaunch { grid: [items, 1, 1], workgroup: [group, 1, 1], arguments: &args, dynamic_lds: 0 };
    let t = std::time::Instant::now();
    let c = launch(&device, &mut memory, k, &req).unwrap();
    let s = t.elapsed().as_secs_f64();
    println!("{} instructions {:.3} s {:.1} M/s", c.instructions, s, c.instructions as f64 / s / 1e6);
}
