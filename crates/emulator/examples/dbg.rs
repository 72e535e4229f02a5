fn main() {
    let gpu = std::env::args().nth(1).unwrap();
    let hex = std::env::args().nth(2).unwrap();
    let bytes: Vec<u8> = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
    let isa = hotswap_isa::Isa::new(hotswap_isa::Target::find(&gpu).unwrap());
    let inst = isa.decode(&bytes).unwrap();
    println!("{:?} {:?} {:?}", inst, inst.class(), inst.entry().template());
    for o in inst.operands(isa) {
        println!("{:?} {:?} {:?} {}", o.name, o.access, o.value, o.kind().name);
    }
}
