// SPDX-License-Identifier: Apache-2.0
// ModuleImage -> ModuleText.
#include "inline/image_text.h"

namespace clew::inline_ {

namespace {

constexpr uint64_t kRseqSignatureBytes = 4;  // Checked by the kernel before the abort address.

void add_functions(const target::ModuleImage& image, ModuleText& text) {
  for (const target::Function& function : image.functions()) {
    const auto owner = static_cast<uint32_t>(text.functions.size());
    text.functions.push_back({function.address, function.size_bytes, kNoOwner});
    for (const target::AddressRange& cold : function.cold) {
      text.functions.push_back({cold.address, cold.size_bytes, owner});
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
    // The start of an unwind entry that no function covers may be jumped to from anywhere.
    text.code_pointers.push_back(fde.address);
  }
  const std::span<const uint64_t> pointers = image.code_pointers();
  text.code_pointers.insert(text.code_pointers.end(), pointers.begin(), pointers.end());
  text.code_pointers.push_back(image.entry_address());
  add_restartable_sequences(image, text);
  return text;
}

}  // namespace clew::inline_
