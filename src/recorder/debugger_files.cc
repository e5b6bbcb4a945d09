// SPDX-License-Identifier: Apache-2.0
#include "recorder/debugger_files.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "copy/unwind.h"
#include "recorder/places.h"
#include "recorder/snap.h"
#include "recorder/snap_modules.h"
#include "recorder/symbol_file.h"

namespace clew::recorder {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kPrivateFolder = 0700;
constexpr mode_t kPrivateFile = 0600;

tl::unexpected<Error> file_error(const std::string& path, int error) {
  return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(error)));
}

Expected<void> write_new(const std::string& path, std::span<const uint8_t> bytes) {
  const FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  if (!file.valid()) return file_error(path, errno);
  while (!bytes.empty()) {
    const ssize_t put = write(file.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return file_error(path, put < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

// As they lie in the process. The copy that the snap's modules have is there already, and tables
// are written for one that is not moved yet.
Expected<copy::UnwindBytes> unwinding_of(const ReadModule& module) {
  const SnapModule& described = *module.described;
  const auto again =
      CLEW_TRY(RecordedModule::make(*module.bare, described.recipe, &described.digest));
  const auto tables = CLEW_TRY(module.file->frame_tables());
  copy::UnwindBytes unwind = CLEW_TRY(
      copy::write_unwind({.tables = tables,
                          .insertions = again->probes().insertions,
                          .copy = again->copy().copy(),
                          .is_position_independent = again->facts().is_position_independent}));
  if (unwind.bytes.empty()) return unwind;
  CLEW_TRY(
      unwind.move_to(described.load_bias, described.copy_address - again->copy().copy().address));
  return unwind;
}

// Of .eh_frame: up to .eh_frame_hdr, which says where it begins.
std::span<const uint8_t> frames_in(const copy::UnwindBytes& unwind) {
  int32_t distance = 0;
  std::memcpy(&distance, unwind.bytes.data() + unwind.header + 4, sizeof(distance));
  const size_t begin = unwind.header + 4 + static_cast<size_t>(int64_t{distance});
  return std::span(unwind.bytes).subspan(begin, unwind.header - begin);
}

// Parts of a function that lie apart, as cold ones, have its name each.
std::vector<NamedCode> functions_of(const ReadModule& module) {
  const copy::ModuleCopy& copy = module.recorded->copy().copy();
  std::vector<NamedCode> functions;
  const target::Function* last = nullptr;
  for (const copy::CopiedPc& pc : copy.pcs) {
    const target::Function* const function = module.image->function_covering(pc.original);
    if (!functions.empty() && function == last) continue;
    last = function;
    functions.push_back({.name = function != nullptr
                                     ? std::string(function->names.front().linkage)
                                     : fmt::format("{}+{:#x}", module.name(), pc.original),
                         .address = copy.address + pc.offset});
  }
  uint64_t end = copy.address + copy.code_size;
  for (auto one = functions.rbegin(); one != functions.rend(); ++one) {
    one->size_bytes = end - one->address;
    end = one->address;
  }
  return functions;
}

// A function's own lines, also where others are inlined in it: it is by its name that it is shown.
void add_lines(ReadModule& module, Places& places, SymbolFile& file) {
  const copy::ModuleCopy& copy = module.recorded->copy().copy();
  std::map<std::string, uint32_t> numbers;
  for (const copy::CopiedPc& pc : copy.pcs) {
    const Frame& frame = places[places.at(module, pc.original)].frames.back();
    LineAt line = {.address = copy.address + pc.offset};
    if (!frame.file.empty()) {
      const auto count = static_cast<uint32_t>(file.files.size());
      line.file = numbers.emplace(frame.file, count).first->second;
      line.line = frame.line;
      if (line.file == count) file.files.push_back(frame.file);
    }
    const bool goes_on = !file.lines.empty() && file.lines.back().file == line.file &&
                         file.lines.back().line == line.line;
    if (!goes_on) file.lines.push_back(line);
  }
}

class Folder {
 public:
  explicit Folder(const DebuggerRequest& request) : request_(request) {}

  Expected<DebuggerFiles> run() {
    const Snap snap = CLEW_TRY(read_snap(request_.snap));
    std::error_code error;
    const std::string folder = fs::absolute(request_.folder, error);
    if (error) return file_error(request_.folder, error.value());
    if (folder.find_first_of("\"\\\n") != std::string::npos)
      return fail(ErrorCode::Refused, "the folder's name cannot stand in a script of gdb");
    if (mkdir(folder.c_str(), kPrivateFolder) != 0) return file_error(folder, errno);
    Expected<void> filled = fill(snap, folder);
    if (filled) return std::move(files_);
    fs::remove_all(folder, error);
    return tl::unexpected(std::move(filled.error()));
  }

 private:
  Expected<void> fill(const Snap& snap, const std::string& folder) {
    SnapModules modules(snap, request_.progress);
    files_.problems = modules.problems();
    Places places(modules);
    std::string script;
    for (ReadModule& module : modules.all()) {
      if (module.recorded == nullptr) continue;
      const std::string path = fmt::format("{}/{}.sym", folder, files_.modules);
      CLEW_TRY(write_module(module, places, path));
      script += fmt::format("add-symbol-file \"{}\"\n", path);
      ++files_.modules;
    }
    files_.script = folder + "/copies.gdb";
    // It asks whether to, where somebody is there.
    script = "set confirm off\n" + script + "set confirm on\n";
    return write_new(files_.script,
                     {reinterpret_cast<const uint8_t*>(script.data()), script.size()});
  }

  Expected<void> write_module(ReadModule& module, Places& places, const std::string& path) {
    if (request_.progress) request_.progress(fmt::format("writing {}", module.name()));
    const copy::UnwindBytes unwind = CLEW_TRY(unwinding_of(module));
    const copy::ModuleCopy& copy = module.recorded->copy().copy();
    SymbolFile file = {.name = module.described->path,
                       .code = copy.address,
                       .code_bytes = copy.code_size,
                       .frame_bytes = {},
                       .functions = functions_of(module)};
    if (!unwind.bytes.empty()) {
      file.frame_bytes = frames_in(unwind);
      file.frames =
          unwind.address + static_cast<uint64_t>(file.frame_bytes.data() - unwind.bytes.data());
    }
    if (module.debug) add_lines(module, places, file);
    files_.functions += file.functions.size();
    return write_new(path, symbol_file_bytes(file));
  }

  const DebuggerRequest& request_;
  DebuggerFiles files_;
};

}  // namespace

Expected<DebuggerFiles> write_for_debugger(const DebuggerRequest& request) {
  return Folder(request).run();
}

}  // namespace clew::recorder
