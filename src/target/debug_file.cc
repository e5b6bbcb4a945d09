// SPDX-License-Identifier: Apache-2.0
#include "target/debug_file.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "target/byte_reader.h"

namespace clew::target {

namespace {

constexpr uint64_t kLinkMaxBytes = 4096 + 8;
constexpr uint64_t kChecksumPieceBytes = uint64_t{1} << 20;

// CRC-32 as zlib has it (the reflected polynomial of IEEE 802.3).
constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320U : 0U);
    }
    table[byte] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

Expected<uint32_t> checksum_of(const ElfFile& file) {
  uint32_t crc = UINT32_MAX;
  for (uint64_t at = 0; at < file.size_bytes(); at += kChecksumPieceBytes) {
    const Buffer piece =
        CLEW_TRY(file.read(at, std::min(kChecksumPieceBytes, file.size_bytes() - at)));
    for (const uint8_t byte : piece.view()) {
      crc = kCrcTable[(crc ^ byte) & 0xff] ^ (crc >> 8);
    }
  }
  return ~crc;
}

// .gnu_debuglink: a file name, its NUL, padding to 4 bytes, the file's checksum.
struct DebugLink {
  std::string name;
  uint32_t checksum = 0;
};

std::optional<DebugLink> read_link(const ElfFile& file) {
  const ElfSection* section = file.find_section(".gnu_debuglink");
  if (section == nullptr || section->header.sh_size > kLinkMaxBytes) return std::nullopt;
  auto bytes = file.read(*section);
  if (!bytes) return std::nullopt;
  ByteReader reader(bytes->view());
  DebugLink link{.name = std::string(reader.read_string())};
  reader.seek((reader.offset() + 3) & ~size_t{3});
  link.checksum = reader.read<uint32_t>();
  const bool is_name = !link.name.empty() && link.name.find('/') == std::string::npos;
  if (reader.failed() || !is_name) return std::nullopt;
  return link;
}

// "/proc/12/root/usr/lib/x.so": the root "/proc/12/root" and the directory "/usr/lib" in it.
struct Place {
  std::string root;
  std::string directory;
};

Place place_of(const std::string& path) {
  Place place;
  const size_t slash = path.rfind('/');
  place.directory = slash == std::string::npos ? "." : path.substr(0, slash);
  constexpr std::string_view kRoot = "/root";
  if (!place.directory.starts_with("/proc/")) return place;
  const size_t pid_end = place.directory.find('/', 6);
  if (pid_end == std::string::npos || place.directory.compare(pid_end, 5, kRoot) != 0) return place;
  place.root = place.directory.substr(0, pid_end + kRoot.size());
  place.directory = place.directory.substr(pid_end + kRoot.size());
  return place;
}

// A build-id and a checksum are easily given to another file, and what it says decides where probes
// are put; so nobody may have written it who could not have written the module, but us and root.
bool is_trusted(const FileOwner& debug, const FileOwner& module) {
  const bool is_known = debug.user == 0 || debug.user == geteuid() || debug.user == module.user;
  const bool same_group = debug.user == module.user && debug.group == module.group;
  return is_known && !debug.others_write && (!debug.group_writes || same_group);
}

std::vector<std::string> candidates_by_link(const Place& place, const DebugLink& link,
                                            const std::string& debug_directory) {
  const std::string here = place.root + place.directory;
  std::vector<std::string> paths = {fmt::format("{}/{}", here, link.name),
                                    fmt::format("{}/.debug/{}", here, link.name)};
  if (debug_directory.empty()) return paths;
  paths.push_back(fmt::format("{}{}/{}", debug_directory, place.directory, link.name));
  if (!place.root.empty()) {
    paths.push_back(
        fmt::format("{}{}{}/{}", place.root, debug_directory, place.directory, link.name));
  }
  return paths;
}

std::vector<std::string> candidates_by_id(const Place& place, const std::string& id,
                                          const std::string& debug_directory) {
  std::vector<std::string> paths;
  if (id.size() < 4 || debug_directory.empty()) return paths;
  const std::string name =
      fmt::format("{}/.build-id/{}/{}.debug", debug_directory, std::string_view(id).substr(0, 2),
                  std::string_view(id).substr(2));
  paths.push_back(name);
  if (!place.root.empty()) paths.push_back(place.root + name);
  return paths;
}

}  // namespace

std::optional<DebugFile> find_debug_file(const ElfFile& file, const std::string& path,
                                         const std::string& debug_directory) {
  const Place place = place_of(path);
  const std::string id = file.build_id();
  for (const std::string& candidate : candidates_by_id(place, id, debug_directory)) {
    auto debug = ElfFile::open(candidate);
    const bool is_ours = debug && debug->build_id() == id;
    if (is_ours && is_trusted(debug->owner(), file.owner())) {
      return DebugFile{candidate, std::move(*debug)};
    }
  }
  const auto link = read_link(file);
  if (!link) return std::nullopt;
  for (const std::string& candidate : candidates_by_link(place, *link, debug_directory)) {
    auto debug = ElfFile::open(candidate);
    if (!debug || candidate == path || !is_trusted(debug->owner(), file.owner())) continue;
    const bool is_ours = id.empty()
                             ? checksum_of(*debug).value_or(~link->checksum) == link->checksum
                             : debug->build_id() == id;
    if (is_ours) return DebugFile{candidate, std::move(*debug)};
  }
  return std::nullopt;
}

std::string missing_debug_file_advice(std::string_view module_name, std::string_view build_id) {
  if (build_id.empty()) {
    return fmt::format("{} has no debug information; compile it with -g", module_name);
  }
  return fmt::format(
      "{} has no debug information, and no file /usr/lib/debug/.build-id/{}/{}.debug; install its "
      "-dbgsym package or compile it with -g",
      module_name, build_id.substr(0, 2), build_id.substr(2));
}

}  // namespace clew::target
