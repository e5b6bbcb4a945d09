// SPDX-License-Identifier: Apache-2.0
// For tests: the ELF files of victims/, and what is proved of their functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "copy/check.h"
#include "copy/prove_module.h"

namespace clew::copy {

class Victim {
 public:
  // One of victims/, or any by its path.
  explicit Victim(std::string_view file)
      : path(file.front() == '/' ? std::string(file) : CLEW_COPY_VICTIMS "/" + std::string(file)),
        image_(*target::ModuleImage::read(path)),
        facts_(*Facts::of(image_)),
        proof_(prove_module(*facts_)) {}

  [[nodiscard]] const Facts& facts() const { return *facts_; }
  [[nodiscard]] const target::ModuleImage& image() const { return image_; }
  [[nodiscard]] const ModuleProof& proof() const { return proof_; }
  [[nodiscard]] const target::Function& function(std::string_view name) const {
    for (const target::Function& one : image_.functions()) {
      if (one.names.front().linkage == name) return one;
    }
    std::abort();
  }
  // Where copies may be: a distance behind the file's last byte that nothing is aligned to.
  [[nodiscard]] uint64_t behind() const { return image_.sections().back().end() + 0x10010; }
  [[nodiscard]] ModuleCopy write() const {
    return *write_copy(*facts_, proof_.proved, {}, behind());
  }
  [[nodiscard]] Expected<CheckedCopy> check(ModuleCopy copy) const {
    return copy::check(*facts_, proof_.proved, {}, std::move(copy));
  }

  const std::string path;

 private:
  target::ModuleImage image_;
  std::unique_ptr<Facts> facts_;
  ModuleProof proof_;
};

}  // namespace clew::copy
