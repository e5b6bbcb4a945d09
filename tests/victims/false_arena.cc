// SPDX-License-Identifier: Apache-2.0
// A process that pretends to be traced: it makes what looks like an arena (abi/arena.h) with a lie
// in it. Who believes the lie writes where this program says, or reads beyond what is there.
//     false_arena LIE     prints its pid when it is ready; ends when standard input does
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "abi/arena.h"
#include "abi/journal.h"

namespace {

using namespace clew::abi;

constexpr uint64_t kJournal = 4096;
constexpr uint64_t kCode = kJournal + kJournalSizeBytes;
constexpr uint64_t kCodeSize = 256ULL << 20;
constexpr uint64_t kSlots = kDirectorySizeBytes + 4096;
constexpr uint64_t kStride = 1 << 20;
constexpr uint64_t kLow = 0x5000'0000;
constexpr uint64_t kExtent = 0x7000'0000'0000;

extern "C" const char __ehdr_start;  // Of ld: where this program is loaded.

extern "C" __attribute__((noinline)) int site(int x) {
  asm volatile("nop;nop;nop;nop;nop;nop;nop;nop");
  return x + 1;
}

void write_header(ArenaHeader& header) {
  header.magic = kArenaMagic;
  header.version = kArenaVersion;
  header.slot_count = 64;
  header.slot_stride = kStride;
  header.low_address = kLow;
  header.slots_file_offset = kSlots;
  header.journal_file_offset = kJournal;
  header.code_file_offset = kCode;
  header.code_size_bytes = kCodeSize;
  header.pid = static_cast<uint32_t>(getpid());
  header.sessions[0].state = 1;  // Its tracer is dead.
  header.sessions[0].tracer_pid = 999'999;
  header.sessions[0].tracer_start_time = 5;
}

// A site in this program's own text, with one layer.
void write_records(SiteRecord& at, LayerRecord& layer) {
  at.state = SiteState::Patched;
  at.address = reinterpret_cast<uint64_t>(&site) + 4;
  at.load_bias = reinterpret_cast<uint64_t>(&__ehdr_start);
  at.size_bytes = 5;
  at.instruction_count = 1;
  at.instructions[0].length = 5;
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    unsigned long start = 0, end = 0, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    const int read =
        sscanf(line, "%lx-%lx %*7s %lx %x:%x %lu", &start, &end, &offset, &major, &minor, &inode);
    if (read != 6 || at.address < start || at.address >= end) continue;
    at.map_start = start;
    at.map_offset = offset;
    at.map_inode = inode;
    at.map_device = uint64_t{major} << 32 | minor;
  }
  layer.in_use = 1;
  layer.size_bytes = 64;
  layer.address = kExtent;
  layer.with_points = 1;
  layer.patch_count = 1;
  layer.patches[0].address = at.address;
  layer.patches[0].size_bytes = 5;
  memcpy(layer.patches[0].original, reinterpret_cast<void*>(at.address), 5);
  memcpy(layer.copy_head[0], "AAAAA", 5);
}

int make_file(const char* name, uint64_t size, bool is_sealed) {
  const int file = memfd_create(name, MFD_ALLOW_SEALING);
  if (ftruncate(file, static_cast<off_t>(size)) != 0) exit(1);
  if (is_sealed) fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string lie = argc > 1 ? argv[1] : "";
  const int file = make_file("clew-arena", kCode + kCodeSize, lie != "unsealed");
  const int slots = make_file("clew-arena-slots", lie == "few_slots" ? 4096 : kSlots + 64 * kStride,
                              lie != "unsealed_slots");
  constexpr int kFixed = MAP_FIXED_NOREPLACE;
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  void* const low = mmap(reinterpret_cast<void*>(kLow + kHeaderOffset), 4096, kBoth,
                         MAP_SHARED | kFixed, file, 0);
  mmap(reinterpret_cast<void*>(kLow), 4096, kBoth, MAP_PRIVATE | MAP_ANONYMOUS | kFixed, -1, 0);
  void* const directory = mmap(reinterpret_cast<void*>(kLow + kDirectoryOffset), kSlots, kBoth,
                               MAP_SHARED | kFixed, slots, 0);
  void* const journal = mmap(nullptr, kJournalSizeBytes, kBoth, MAP_SHARED, file, kJournal);
  if (low == MAP_FAILED || directory == MAP_FAILED || journal == MAP_FAILED) return 1;
  auto& header = *static_cast<ArenaHeader*>(low);
  auto& log = *static_cast<JournalHeader*>(journal);
  auto& place = *reinterpret_cast<SiteRecord*>(static_cast<char*>(journal) + kJournalSitesOffset);
  auto* const layers =
      reinterpret_cast<LayerRecord*>(static_cast<char*>(journal) + kJournalLayersOffset);
  write_header(header);
  header.journal_address = reinterpret_cast<uint64_t>(journal);
  log.magic = kJournalMagic;
  log.version = kJournalVersion;
  log.extent_count = 1;
  log.site_count = 1;
  log.layer_count = 2;
  log.extents[0] = {
      .address = kExtent, .size_bytes = 1 << 20, .file_offset = kCode, .used_bytes = 4096};
  write_records(place, layers[0]);
  // The other one's session lives: the chain of layers is linked anew when the first one leaves.
  layers[1] = layers[0];
  layers[1].session = 1;
  layers[1].order = 1;
  layers[1].address += 64;
  header.sessions[1] = header.sessions[0];
  if (argc > 3) {
    header.sessions[1].tracer_pid = static_cast<uint32_t>(strtoul(argv[2], nullptr, 0));
    header.sessions[1].tracer_start_time = strtoull(argv[3], nullptr, 0);
  }
  if (lie == "file_offset") log.extents[0].file_offset = 0x4141'4141'0000;
  if (lie == "extent_size") log.extents[0].size_bytes = ~uint64_t{4095};
  if (lie == "patch_size") layers[0].patches[0].size_bytes = 255;
  if (lie == "patch_address") layers[0].patches[0].address = ~uint64_t{3};
  if (lie == "patch_in_data") layers[0].patches[0].address = kLow + 64;
  if (lie == "layer_size") layers[0].size_bytes = UINT32_MAX;
  if (lie == "layer_site") layers[1].site = kSitesMax - 1;
  if (lie == "window_size") place.size_bytes = 255;
  if (lie == "no_instructions") place.instruction_count = 0;
  if (lie == "instruction_offset") place.instructions[0].offset = 1;
  if (lie == "instruction_length") place.instructions[0].length = 255;
  if (lie == "stride") header.slot_stride = 0;
  if (lie == "region") header.sessions[1].layout.size_log2 = 255;
  printf("%d\n", getpid());
  fflush(stdout);
  return getchar() == EOF ? 0 : site(0);
}
