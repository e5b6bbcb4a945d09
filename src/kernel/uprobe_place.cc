// SPDX-License-Identifier: Apache-2.0
#include "kernel/uprobe_place.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "target/process.h"

namespace clew::kernel {

std::optional<uint64_t> file_offset(const target::ModuleImage& image, uint64_t address) {
  const target::Section* section = image.section_at(address);
  if (section == nullptr || address - section->address >= section->file_size_bytes) {
    return std::nullopt;
  }
  return section->file_offset + (address - section->address);
}

bool is_entered_by_call(const target::ModuleImage& image, const target::Function& function,
                        std::string_view name) {
  if (name.find(".cold") != std::string_view::npos) return false;
  const auto fdes = image.fdes();
  const auto fde = std::lower_bound(
      fdes.begin(), fdes.end(), function.address,
      [](const target::Fde& each, uint64_t address) { return each.address < address; });
  const bool is_described = fde != fdes.end() && fde->address == function.address;
  return !is_described || fde->cfa_at_start_is_rsp_plus_8;
}

std::string_view return_problem(const target::ModuleImage& image,
                                const target::Function& function) {
  if (function.address == image.entry_address()) return "nothing called it";
  const auto sections = image.sections();
  const bool is_go =
      std::any_of(sections.begin(), sections.end(),
                  [](const target::Section& section) { return section.name == ".gopclntab"; });
  return is_go ? "Go moves its stacks" : "";
}

bool has_kernels_pids(pid_t pid) {
  constexpr std::string_view kFirst = "pid:[4026531836]";  // PROC_PID_INIT_INO
  std::error_code error;
  const pid_t thread = target::memory_holder(pid);  // A thread that has ended is in no name space.
  const auto name_space =
      std::filesystem::read_symlink(fmt::format("/proc/{}/ns/pid", thread), error);
  return name_space == kFirst;
}

}  // namespace clew::kernel
