// SPDX-License-Identifier: Apache-2.0
// Helpers of the live tests.
#include "inline/victim.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/region.h"
#include "code/image_text.h"
#include "verify/verified_code.h"

namespace clew::inline_::testing_ {

Victim::Victim(const std::string& path) {
  int to[2] = {};
  int from[2] = {};
  EXPECT_EQ(pipe2(to, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(from, O_CLOEXEC), 0);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    execl(path.c_str(), path.c_str(), nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
  EXPECT_EQ(read_line(), "ready");
}

Victim::~Victim() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  fclose(to_);
  fclose(from_);
}

void Victim::send(const std::string& line) {
  fprintf(to_, "%s\n", line.c_str());
  fflush(to_);
}

std::string Victim::read_line() {
  char text[256] = "";
  if (fgets(text, sizeof text, from_) == nullptr) return "(end)";
  std::string line = text;
  while (!line.empty() && line.back() == '\n')
    line.pop_back();
  return line;
}

std::string Victim::ask(const std::string& line) {
  send(line);
  return read_line();
}

long Victim::ask_number(const std::string& line) {
  return std::strtol(ask(line).c_str(), nullptr, 10);
}

int Victim::finish() {
  fclose(to_);
  fclose(from_);
  int status = -1;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

namespace {

size_t entries_in(const std::string& folder) {
  DIR* const listing = opendir(folder.c_str());
  size_t count = 0;
  while (listing != nullptr && readdir(listing) != nullptr)
    ++count;
  if (listing != nullptr) closedir(listing);
  return count;
}

}  // namespace

Footprint footprint_of(pid_t pid) {
  Footprint footprint;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    if (line.find("[heap]") == std::string::npos) footprint.mappings.push_back(line);
  }
  footprint.descriptors = entries_in(fmt::format("/proc/{}/fd", pid));
  footprint.threads = entries_in(fmt::format("/proc/{}/task", pid));
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    // SigQ counts for all processes of the user.
    const bool signals =
        (line.starts_with("Sig") && !line.starts_with("SigQ")) || line.starts_with("ShdPnd");
    if (signals) footprint.signals += line + "\n";
  }
  return footprint;
}

std::ostream& operator<<(std::ostream& out, const Footprint& footprint) {
  for (const std::string& line : footprint.mappings)
    out << line << "\n";
  return out << footprint.descriptors << " descriptors, " << footprint.threads << " threads\n"
             << footprint.signals;
}

std::vector<uint64_t> changed_text(pid_t pid) {
  std::vector<uint64_t> changed;
  const auto maps = target::read_memory_map(pid);
  EXPECT_TRUE(maps && !maps->empty()) << "process " << pid << " has ended";
  for (const target::Mapping& map : *maps) {
    if (!map.executable || map.shared || map.inode == 0 || map.path.empty() || map.path[0] != '/')
      continue;
    std::vector<uint8_t> memory(map.size_bytes());
    std::vector<uint8_t> file(map.size_bytes());
    const int fd = open(fmt::format("/proc/{}/root{}", pid, map.path).c_str(), O_RDONLY);
    if (fd < 0) continue;
    const ssize_t size = pread(fd, file.data(), file.size(), static_cast<off_t>(map.file_offset));
    close(fd);
    if (size <= 0 || !target::read_memory(pid, map.start, memory)) continue;
    for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
      if (memory[i] != file[i]) changed.push_back(map.start + i);
    }
  }
  return changed;
}

uint64_t Module::address_of(std::string_view function) const {
  for (const target::Function& candidate : image.functions()) {
    for (const target::FunctionName& name : candidate.names) {
      if (name.linkage == function) return candidate.address;
    }
  }
  ADD_FAILURE() << "no function " << function;
  return 0;
}

std::unique_ptr<Module> module_of(pid_t pid, std::string_view path_part) {
  const auto modules = target::read_modules(pid);
  for (const target::ProcessModule& module : *modules) {
    if (module.path.find(path_part) == std::string::npos) continue;
    auto image = target::ModuleImage::read(module.open_path);
    if (!image) continue;
    auto result = std::make_unique<Module>(std::move(*image), module.load_bias);
    const auto text = code::text_of(result->image);
    EXPECT_TRUE(text.has_value());
    result->code = code::analyse(*text);
    return result;
  }
  ADD_FAILURE() << "no module " << path_part;
  return nullptr;
}

namespace {

constexpr uint32_t kRegionSizeLog2 = 12;

void put_word(std::vector<uint8_t>& code, uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    code.push_back(static_cast<uint8_t>(value >> shift));
}

void put(std::vector<uint8_t>& code, std::initializer_list<uint8_t> bytes) {
  code.insert(code.end(), bytes);
}

// inc qword gs:[cell], or mov rax ; add rax, 1 ; mov.
std::vector<uint8_t> counter_body(uint32_t address, bool guarded) {
  std::vector<uint8_t> code;
  if (!guarded) {
    put(code, {0x65, 0x48, 0x83, 0x04, 0x25});
    put_word(code, address);
    put(code, {0x01});
    return code;
  }
  put(code, {0x65, 0x48, 0x8b, 0x04, 0x25});
  put_word(code, address);
  put(code, {0x48, 0x83, 0xc0, 0x01});
  put(code, {0x65, 0x48, 0x89, 0x04, 0x25});
  put_word(code, address);
  return code;
}

}  // namespace

OpenOptions small_options() {
  OpenOptions options;
  options.region.size_log2 = kRegionSizeLog2;
  options.region.generations = 1;
  return options;
}

code::Plan plan_of(const Module& module,
                   const std::vector<std::pair<code::RequestKind, std::string>>& wanted,
                   const Attachment& attachment) {
  std::vector<code::Request> requests;
  for (const auto& [kind, name] : wanted)
    requests.push_back({.kind = kind, .address = module.address_of(name)});
  return plan_windows(module.code, requests, attachment.installed(module.load_bias));
}

Expected<InstallReport> install_counters(Attachment& attachment, const Module& module,
                                         const code::Plan& plan, const CounterOptions& options) {
  const Geometry& geometry = attachment.geometry();
  const auto clobbers_of = [&](const code::Point& point) {
    abi::RegisterSet clobbers;
    if (options.guarded) clobbers.add(abi::Register::Rax);
    if (point.keeps_flags) clobbers.add(abi::kSavedFlags);
    return clobbers;
  };
  const auto body_of = [&](uint32_t point) {
    const uint32_t index = options.first_cell + (options.shared_cell ? 0 : point);
    return counter_body(geometry.window_address + abi::kFrameEnd + 8 * index, options.guarded);
  };
  std::vector<BodyShape> shapes;
  for (const code::Point& point : plan.points) {
    shapes.push_back({.size_bytes = static_cast<uint32_t>(body_of(0).size()),
                      .clobbers = clobbers_of(point),
                      .guarded = options.guarded});
  }
  const ModuleRequest request = {
      .plan = &plan, .load_bias = module.load_bias, .bodies = shapes, .text = module.text};
  Layout layout = CLEW_TRY(attachment.lay_out({&request, 1}));
  std::vector<Body> bodies;
  for (uint32_t point = 0; point < plan.points.size(); ++point) {
    const auto place = layout.place(0, point);
    if (!place) continue;
    verify::Policy policy;
    policy.address = place->address;
    policy.window_address = geometry.window_address;
    policy.window_size_log2 = kRegionSizeLog2;
    policy.slot_address = geometry.slot_address;
    policy.generation_address = geometry.generation_address;
    policy.clobbers = clobbers_of(plan.points[point]);
    bodies.push_back({0, point, CLEW_TRY(verify::check(body_of(point), policy))});
  }
  return attachment.install(std::move(layout), bodies);
}

uint64_t header_word(const Attachment& attachment, uint32_t offset) {
  const ArenaView arena = attachment.arena();
  const uint32_t region =
      attachment.geometry().window_address - attachment.geometry().slot_address + offset;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < arena.slot_count; ++i) {
    const uint64_t start = arena.slots_file_offset + i * arena.slot_stride_bytes;
    const off_t data = lseek(arena.memory_file, static_cast<off_t>(start), SEEK_DATA);
    if (data < 0) break;
    i = static_cast<uint32_t>((static_cast<uint64_t>(data) - arena.slots_file_offset) /
                              arena.slot_stride_bytes);
    uint64_t word = 0;
    std::memcpy(&word, arena.slots + i * arena.slot_stride_bytes + region, sizeof word);
    sum += word;
  }
  return sum;
}

uint64_t cell(const Attachment& attachment, uint32_t index) {
  return header_word(attachment, abi::kFrameEnd + 8 * index);
}

}  // namespace clew::inline_::testing_
