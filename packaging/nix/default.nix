# Example: nix-build packaging/nix
{ pkgs ? import <nixpkgs> { } }:
pkgs.rustPlatform.buildRustPackage {
  pname = "hotswap";
  version = "0.1.0";
  src = pkgs.lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;
  doCheck = false;
  nativeBuildInputs = [ pkgs.git ];
  # The clang of Nix is a script that adds flags; it is the one to start.
  buildPhase = ''
    runHook preBuild
    cargo --offline xtask install --prefix $out --clang ${pkgs.rocmPackages.clr}/bin/amdclang++
    runHook postBuild
  '';
  installPhase = "true";
  meta = {
    description = "Makes one HIP build run on more AMD GPUs";
    license = with pkgs.lib.licenses; [ asl20 llvm-exception ];
    platforms = [ "x86_64-linux" "aarch64-linux" ];
    mainProgram = "hotswap";
  };
}
