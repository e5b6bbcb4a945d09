// SPDX-License-Identifier: Apache-2.0
// ModuleFile: an ELF file whose bytes were read once, all of them: what is known of them by their
// digest is true of what is analysed, whatever happens to the file meanwhile, and whoever serves
// it. No other file is looked at: two that have the same bytes are the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "target/frame_tables.h"
#include "target/linked_names.h"
#include "target/module_image.h"
#include "target/sha256.h"

namespace clew::target {

class ElfFile;

class ModuleFile {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{512} << 20;

  // Errors: NotFound, Io; Refused when it is no x86-64 ELF program or library; Limit when it is
  // larger than that.
  static Expected<ModuleFile> read(const std::string& path);
  ModuleFile(ModuleFile&&) noexcept;
  ModuleFile& operator=(ModuleFile&&) noexcept;
  ~ModuleFile();

  [[nodiscard]] const Digest& digest() const { return digest_; }  // SHA-256
  [[nodiscard]] Expected<LinkedNames> names() const;
  [[nodiscard]] Expected<FrameTables> frame_tables() const;
  // Of the same bytes, which it reads from this object: it must not outlive it. No separate debug
  // file is read.
  [[nodiscard]] Expected<ModuleImage> image();

 private:
  ModuleFile(std::string path, std::unique_ptr<ElfFile> file, const Digest& digest);

  std::string path_;
  std::unique_ptr<ElfFile> file_;
  FileDescriptor same_;  // The bytes as a file, for images.
  Digest digest_;
};

}  // namespace clew::target
