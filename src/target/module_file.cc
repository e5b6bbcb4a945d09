// SPDX-License-Identifier: Apache-2.0
#include "target/module_file.h"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "target/cache_folder.h"
#include "target/elf_file.h"

namespace clew::target {

Expected<ModuleFile> ModuleFile::read(const std::string& path) {
  Buffer bytes;
  {
    const ElfFile file = CLEW_TRY(ElfFile::open(path));
    if (file.size_bytes() > kBytesMax) {
      return fail(ErrorCode::Limit, fmt::format("{} is larger than {} MiB", path, kBytesMax >> 20));
    }
    bytes = CLEW_TRY(file.read(0, file.size_bytes()));
  }
  Sha256 sum;
  sum.add(bytes.view());
  auto file = std::make_unique<ElfFile>(CLEW_TRY(ElfFile::from_buffer(std::move(bytes))));
  return ModuleFile(path, std::move(file), sum.finish());
}

ModuleFile::ModuleFile(std::string path, std::unique_ptr<ElfFile> file, const Digest& digest)
    : path_(std::move(path)), file_(std::move(file)), digest_(digest) {}
ModuleFile::ModuleFile(ModuleFile&&) noexcept = default;
ModuleFile& ModuleFile::operator=(ModuleFile&&) noexcept = default;
ModuleFile::~ModuleFile() = default;

Expected<LinkedNames> ModuleFile::names() const {
  return linked_names_of(*file_);
}

Expected<FrameTables> ModuleFile::frame_tables() const {
  return frame_tables_of(*file_);
}

// Images are read from files.
Expected<ModuleImage> ModuleFile::image() {
  if (!same_.valid()) {
    FileDescriptor same(memfd_create("clew-module", MFD_CLOEXEC));
    if (!same.valid()) {
      return fail(ErrorCode::Io, fmt::format("{}: memfd_create: {}", path_, error_text(errno)));
    }
    const Buffer bytes = CLEW_TRY(file_->read(0, file_->size_bytes()));
    BlockWriter writer(same.get());
    writer.write(bytes.view());
    if (!writer.good()) return fail(ErrorCode::Io, fmt::format("{}: no memory for a copy", path_));
    same_ = std::move(same);
  }
  ReadOptions options;
  options.debug_directory.clear();
  options.name = path_.substr(path_.rfind('/') + 1);
  return ModuleImage::read(fmt::format("/proc/self/fd/{}", same_.get()), options);
}

}  // namespace clew::target
