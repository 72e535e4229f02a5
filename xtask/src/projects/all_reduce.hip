// RCCL's all-reduce of sums of floats alone, by its own macros: its file all_reduce.cu makes 56 of them, for minutes. The program
// fills the structures that RCCL's host library would fill for a ring of all GPUs with one channel, whose buffers are in the memory
// of the receiving GPU, and starts the kernel that RCCL starts for every collective.
#include "all_reduce.h"
#include "common.h"
#include "collectives.h"
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

IMPL_COLL3(AllReduce, Sum, float, ncclFloat32);

#define CHECK(call)                                                                                \
    if (hipError_t error = (call); error != hipSuccess) {                                          \
        printf("line %d: %s\n", __LINE__, hipGetErrorString(error));                               \
        exit(1);                                                                                   \
    }

static const int COUNT = 20011; // fills no step and no line
static const int THREADS = NCCL_MAX_NTHREADS;
// As in RCCL's init.cc, but for a smaller buffer of the simple protocol: several steps are in flight then.
static const int LL_BYTES = NCCL_LL_LINES_PER_THREAD * NCCL_LL_MAX_NTHREADS * NCCL_STEPS * sizeof(union ncclLLFifoLine);
static const int SIMPLE_BYTES = 1 << 18;

template <typename T> static T *zeros(size_t count) {
    T *memory;
    CHECK(hipMalloc((void **)&memory, count * sizeof(T)));
    CHECK(hipMemset(memory, 0, count * sizeof(T)));
    return memory;
}

template <typename T> static T *copied(const T &value) {
    T *memory = zeros<T>(1);
    CHECK(hipMemcpy(memory, &value, sizeof(T), hipMemcpyHostToDevice));
    return memory;
}

// The memory of one GPU.
struct Rank {
    char *ll, *simple;     // written by the GPU before it
    uint64_t *head, *tail; // of its sends, of its receives
    float *input, *output;
    ncclDevComm *comm;
    int lanes;
};

// Inputs whose sum is exact.
static float input(int rank, int index) { return float((index * 7 + rank * 1001) % 4096); }

static void allocate(Rank &rank, int number, int ranks) {
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, number));
    // Its WARP_SIZE: 32 where the compiler defines __gfx1030__.
    rank.lanes = strncmp(properties.gcnArchName, "gfx1030", 7) == 0 ? 32 : 64;
    CHECK(hipSetDevice(number));
    for (int other = 0; other < ranks; ++other)
        if (other != number) CHECK(hipDeviceEnablePeerAccess(other, 0));
    rank.ll = zeros<char>(LL_BYTES), rank.simple = zeros<char>(SIMPLE_BYTES);
    rank.head = zeros<uint64_t>(1), rank.tail = zeros<uint64_t>(1);
    rank.input = zeros<float>(COUNT), rank.output = zeros<float>(COUNT);
    std::vector<float> values(COUNT);
    for (int index = 0; index < COUNT; ++index) values[index] = input(number, index);
    CHECK(hipMemcpy(rank.input, values.data(), COUNT * sizeof(float), hipMemcpyHostToDevice));
}

static ncclConnInfo connection(const Rank &receiver, const Rank &sender) {
    ncclConnInfo connection = {};
    connection.buffs[NCCL_PROTO_LL] = receiver.ll, connection.buffs[NCCL_PROTO_SIMPLE] = receiver.simple;
    connection.head = sender.head, connection.tail = receiver.tail;
    return connection;
}

static void connect(std::vector<Rank> &ring, int number) {
    int ranks = ring.size(), next = (number + 1) % ranks, previous = (number + ranks - 1) % ranks;
    CHECK(hipSetDevice(number));
    std::vector<ncclDevChannelPeer> peers(ranks, ncclDevChannelPeer{});
    peers[next].send[0] = connection(ring[next], ring[number]);
    peers[previous].recv[0] = connection(ring[number], ring[previous]);
    ncclDevCommAndChannels all = {};
    ncclDevChannel &channel = all.channels[0];
    channel.peers = zeros<ncclDevChannelPeer>(ranks);
    CHECK(hipMemcpy(channel.peers, peers.data(), ranks * sizeof(peers[0]), hipMemcpyHostToDevice));
    channel.ring.prev = previous, channel.ring.next = next, channel.ring.index = number;
    all.comm.rank = number, all.comm.nRanks = ranks;
    all.comm.buffSizes[NCCL_PROTO_LL] = LL_BYTES, all.comm.buffSizes[NCCL_PROTO_SIMPLE] = SIMPLE_BYTES;
    all.comm.abortFlag = zeros<uint32_t>(1);
    all.comm.collTrace = zeros<ncclCollTrace>(COLLTRACE_NUM_ITEMS), all.comm.collTraceTail = zeros<uint32_t>(1);
    ring[number].comm = (ncclDevComm *)copied(all);
}

static ncclWork *work(const Rank &rank, int protocol) {
    ncclWork work = {};
    work.header.funcIndex = FUNC_INDEX(ncclFuncAllReduce, ncclDevSum, ncclFloat32, NCCL_ALGO_RING, protocol);
    work.header.type = ncclWorkTypeColl, work.header.isLast = 1;
    ncclWorkElem &part = work.elems[0];
    part.isUsed = 1, part.nWarps = THREADS / rank.lanes, part.nChannels = 1;
    part.sendbuff = rank.input, part.recvbuff = rank.output, part.count = COUNT;
    return copied(work);
}

static bool reduce(std::vector<Rank> &ring, int protocol, const char *name) {
    std::vector<ncclWork *> works;
    for (size_t number = 0; number < ring.size(); ++number) {
        CHECK(hipSetDevice(number));
        CHECK(hipMemset(ring[number].output, 0xff, COUNT * sizeof(float)));
        works.push_back(work(ring[number], protocol));
    }
    for (size_t number = 0; number < ring.size(); ++number) { // none ends before all have started
        CHECK(hipSetDevice(number));
        ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t<<<1, THREADS>>>(ring[number].comm, 1, works[number]);
        CHECK(hipGetLastError());
    }
    int wrong = 0;
    for (size_t number = 0; number < ring.size(); ++number) {
        CHECK(hipSetDevice(number));
        std::vector<float> result(COUNT);
        CHECK(hipMemcpy(result.data(), ring[number].output, COUNT * sizeof(float), hipMemcpyDeviceToHost));
        for (int index = 0; index < COUNT; ++index) {
            float sum = 0;
            for (size_t rank = 0; rank < ring.size(); ++rank) sum += input(rank, index);
            wrong += result[index] != sum;
        }
    }
    printf("%s: %zu GPUs, %d floats, %d wrong\n", name, ring.size(), COUNT, wrong);
    return wrong == 0;
}

int main() {
    int ranks;
    CHECK(hipGetDeviceCount(&ranks));
    if (ranks < 2) return printf("an all-reduce needs two GPUs\n"), 1;
    std::vector<Rank> ring(ranks);
    for (int number = 0; number < ranks; ++number) allocate(ring[number], number, ranks);
    for (int number = 0; number < ranks; ++number) connect(ring, number);
    bool low_latency = reduce(ring, NCCL_PROTO_LL, "ring, LL");
    return reduce(ring, NCCL_PROTO_SIMPLE, "ring, simple") && low_latency ? 0 : 1;
}
