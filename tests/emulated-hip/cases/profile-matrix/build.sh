# Builds one program of a row through the wrapper, in the directory of its clang: build.sh WRAPPER CLANG CODE RDC NAMES PROGRAM FORM.
# Objects that rows share are compiled once.
set -e
wrapper=$1 version=$2 code=$3 rdc=$4 names=$5 program=$6 form=$7
mkdir -p clang-$version && cd clang-$version
export HOTSWAP_CLANG=$(command -v clang++-$version)
[ $version = 22 ] && ROCM=
HIP=$(ls /usr/lib/*/libamdhip64.so)
X() { $wrapper ${ROCM:+--rocm-path=$ROCM} -O1 -w -nogpuinc -I.. -fprofile-instr-generate -fcoverage-mapping "$@"; }
case $code in
  native) archs=--offload-arch=gfx1030; own=gfx1030 ;;
  generic) archs=--offload-arch=gfx10-3-generic; own=gfx10-3-generic ;;
  both) archs="--offload-arch=gfx1030 --offload-arch=gfx10-3-generic"; own=gfx10-3-generic ;;
  xnack) archs="--offload-arch=gfx90a:xnack+ --offload-arch=gfx90a:xnack-"; own=gfx90a:xnack- ;;
esac
device_link=
[ $rdc = rdc ] && archs="$archs -fgpu-rdc" && device_link="--hip-link $archs"
defines="-DPROGRAM=$program"
[ $names = same ] && defines="$defines -DSAME_NAMES"

objects=
for unit in 1 2; do
  object=unit-$unit-$code-$rdc-$names-$program.o
  [ -e $object ] || X $archs $defines -fPIC -c ../unit-$unit.hip -o $object
  objects="$objects $object"
done
[ -e main-$program.o ] || X -fPIC $defines -c ../main.cpp -o main-$program.o
module=module-$own-$program.co
[ -e $module ] || X $defines --offload-arch=$own --cuda-device-only --no-gpu-bundle-output -x hip ../module.hip -o $module

output=app-$code-$rdc-$names-$program-$form
[ -e $output ] && exit
case $form in
  sources) X $archs $defines -fPIC -x hip ../unit-1.hip ../unit-2.hip -x none main-$program.o -lamdhip64 -lhiprtc -o $output ;;
  hip-link) X --hip-link $archs main-$program.o $objects -lamdhip64 -lhiprtc -o $output ;;
  archive)
    rm -f lib$output.a && ar rcs lib$output.a $objects
    # With --hip-link, clang alone refuses a C++ source that includes the standard library (23, 24: its wrappers of CUDA's headers)
    # or that comes first before an archive (22: undefined __hip_gpubin_handle). One without headers, after objects, is linked.
    source="-x c++ ../main.cpp -x none"
    [ $rdc = rdc ] && echo 'int in_no_header;' >plain.cpp && source="main-$program.o -x c++ plain.cpp -x none"
    X $device_link $defines $source lib$output.a -lamdhip64 -lhiprtc -o $output ;;
  path) X $device_link main-$program.o $objects $HIP -lhiprtc -o $output ;;
  library)
    X --hip-link $archs -shared $objects -lamdhip64 -o lib$output.so
    X main-$program.o -L. -l$output -Wl,-rpath,$PWD -lamdhip64 -lhiprtc -o $output ;;
  unnamed)
    rm -f lib$output.a && ar rcs lib$output.a $objects
    X $device_link main-$program.o lib$output.a -Wl,-lamdhip64 -lhiprtc -o $output ;;
esac
