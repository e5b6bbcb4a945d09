// SPDX-License-Identifier: Apache-2.0
// ModuleImage -> ModuleText.
#include "code/image_text.h"

#include <string_view>

namespace clew::code {

namespace {

constexpr uint64_t kRseqSignatureBytes = 4;  // Checked by the kernel before the abort address.

bool is_cold_name(std::string_view name) {
  return name.find(".cold") != std::string_view::npos;
}

void add_functions(const target::ModuleImage& image, ModuleText& text) {
  std::span<const target::Fde> fdes = image.fdes();
  for (const target::Function& function : image.functions()) {
    const auto owner = static_cast<uint32_t>(text.functions.size());
    FunctionRange range{.address = function.address, .size_bytes = function.size_bytes};
    // A name that is no cold part's makes it a function, whatever assembly says of its frame.
    range.unnamed = function.origin == target::FunctionOrigin::UnwindEntry ||
                    is_cold_name(function.names.front().linkage);
    while (!fdes.empty() && fdes.front().address < function.address)
      fdes = fdes.subspan(1);
    const bool has_fde = !fdes.empty() && fdes.front().address == function.address;
    range.mid_frame = range.unnamed && has_fde && !fdes.front().cfa_at_start_is_rsp_plus_8;
    text.functions.push_back(range);
    for (const target::AddressRange& cold : function.cold) {
      text.functions.push_back(
          {.address = cold.address, .size_bytes = cold.size_bytes, .owner = owner});
    }
  }
}

void add_restartable_sequences(const target::ModuleImage& image, ModuleText& text) {
  for (const target::RestartableSequence& sequence : image.restartable_sequences()) {
    text.rseq.push_back({sequence.start, sequence.start + sequence.size_bytes});
    text.rseq.push_back({sequence.abort_address - kRseqSignatureBytes, sequence.abort_address + 1});
  }
}

}  // namespace

Expected<ModuleText> text_of(const target::ModuleImage& image) {
  ModuleText text;
  text.position_dependent = !image.is_position_independent();
  for (const target::Section& section : image.sections()) {
    if (section.file_size_bytes == 0) continue;
    const std::span<const uint8_t> bytes = CLEW_TRY(image.bytes(section));
    text.sections.push_back({section.address, bytes, section.executable});
  }
  add_functions(image, text);
  for (const target::Fde& fde : image.fdes()) {
    text.landing_pads.insert(text.landing_pads.end(), fde.landing_pads.begin(),
                             fde.landing_pads.end());
    for (const uint64_t pad : fde.landing_pads) {
      if (pad - fde.address >= fde.size_bytes) text.part_links.push_back({fde.address, pad});
    }
  }
  const std::span<const uint64_t> pointers = image.code_pointers();
  text.code_pointers.insert(text.code_pointers.end(), pointers.begin(), pointers.end());
  text.code_pointers.push_back(image.entry_address());
  add_restartable_sequences(image, text);
  return text;
}

}  // namespace clew::code
