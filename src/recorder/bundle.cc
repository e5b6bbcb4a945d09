// SPDX-License-Identifier: Apache-2.0
#include "recorder/bundle.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "recorder/show.h"
#include "recorder/snap_modules.h"
#include "recorder/source_text.h"
#include "target/module_image.h"

namespace clew::recorder {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kFolderMode = 0700;
constexpr std::array<std::string_view, 23> kSourceEndings = {
    ".c",   ".C",   ".cc",  ".cp",  ".cpp", ".cxx", ".c++", ".h", ".H", ".hh", ".hpp", ".hxx",
    ".h++", ".inc", ".inl", ".ipp", ".tcc", ".def", ".y",   ".l", ".s", ".S",  ".py"};

bool is_called_a_source(const fs::path& file) {
  const std::string ending = file.extension();
  return std::find(kSourceEndings.begin(), kSourceEndings.end(), ending) != kSourceEndings.end();
}

// Below a folder, whatever the path says: ".." is none of its parts.
std::optional<std::string> below(const std::string& folder, const std::string& path) {
  const fs::path inside = fs::path(path).lexically_normal().relative_path();
  const bool leaves =
      std::any_of(inside.begin(), inside.end(), [](const fs::path& part) { return part == ".."; });
  if (inside.empty() || leaves || !inside.has_filename()) return std::nullopt;
  return fmt::format("{}/{}", folder, inside.string());
}

tl::unexpected<Error> io_error(const std::string& path, int error) {
  return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(error)));
}

Expected<void> copy_bytes(const FileDescriptor& from, const std::string& path) {
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const FileDescriptor to(open(path.c_str(), kNew, 0600));
  if (!to.valid()) return io_error(path, errno);
  std::array<uint8_t, size_t{64} << 10> part{};
  while (true) {
    const ssize_t got = read(from.get(), part.data(), part.size());
    if (got < 0) return io_error(path, errno);
    if (got == 0) break;
    const ssize_t put = write(to.get(), part.data(), static_cast<size_t>(got));
    if (put != got) return io_error(path, put < 0 ? errno : ENOSPC);
  }
  // Whether a source is older than its module is judged by their times.
  struct stat status {};
  if (fstat(from.get(), &status) != 0) return io_error(path, errno);
  const std::array<timespec, 2> times = {status.st_atim, status.st_mtim};
  if (futimens(to.get(), times.data()) != 0) return io_error(path, errno);
  return {};
}

// Of a regular file. Folders in between are made.
Expected<void> copy_file(const std::string& from, const std::string& to) {
  const FileDescriptor file(open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) return io_error(from, errno);
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::Io, fmt::format("{} is no file", from));
  std::error_code error;
  fs::create_directories(fs::path(to).parent_path(), error);
  if (error) return io_error(to, error.value());
  return copy_bytes(file, to);
}

class Bundler {
 public:
  explicit Bundler(const BundleRequest& request)
      : request_(request), files_(request.folder + "/files") {}

  Expected<BundleContents> run() {
    const Snap snap = CLEW_TRY(read_snap(request_.snap));
    if (!snap.files.empty())
      return fail(ErrorCode::Refused, fmt::format("{} is a bundle", request_.snap));
    if (mkdir(request_.folder.c_str(), kFolderMode) != 0) return io_error(request_.folder, errno);
    Expected<void> filled = fill(snap);
    if (filled) return std::move(contents_);
    std::error_code error;
    fs::remove_all(request_.folder, error);
    return tl::unexpected(std::move(filled.error()));
  }

 private:
  Expected<void> fill(const Snap& snap) {
    std::string name(file_of(request_.snap));
    if (!name.ends_with(".snap")) name += ".snap";  // By which it is found (snap_in).
    CLEW_TRY(copy_file(request_.snap, fmt::format("{}/{}", request_.folder, name)));
    add_modules(snap);
    return add_sources(snap);
  }

  // The same file may be wanted twice.
  bool add(const std::string& from, const std::string& path) {
    const auto to = below(files_, path);
    if (!to || !taken_.insert(*to).second) return false;
    const Expected<void> copied = copy_file(from, *to);
    if (!copied) contents_.problems.push_back(copied.error().message);
    return copied.has_value();
  }

  void add_modules(const Snap& snap) {
    SnapModules modules(snap, request_.progress);
    contents_.problems = modules.problems();
    for (const ReadModule& module : modules.all()) {
      if (add(module.described->path, module.described->path)) ++contents_.modules;
      const std::string debug(module.image->debug_file());
      if (!debug.empty() && add(debug, debug_path(module, debug))) ++contents_.debug_files;
    }
  }

  // Where it is looked for by the module's build-id.
  static std::string debug_path(const ReadModule& module, const std::string& found) {
    const std::string path = debug_file_of(module.image->build_id());
    return path.empty() ? found : path;
  }

  Expected<void> add_sources(const Snap& snap) {
    const Shown shown = CLEW_TRY(show(snap, {.last = std::numeric_limits<size_t>::max(),
                                             .source_folders = request_.source_folders,
                                             .progress = request_.progress}));
    std::set<std::string> names;
    for (const ShownThread& thread : shown.threads) {
      for (const ShownLine& line : thread.lines)
        names.insert(line.file);
      names.insert(thread.stopped.file);
      for (const ShownScript& script : thread.scripts) {
        for (const ShownScriptCall& call : script.calls)
          names.insert(call.file);
      }
    }
    SourceText sources(request_.source_folders);
    for (const std::string& name : names) {
      const auto found = sources.path_of(name);
      if (found && is_called_a_source(name) && add(*found, name)) ++contents_.sources;
    }
    return {};
  }

  const BundleRequest& request_;
  std::string files_;
  std::set<std::string> taken_;
  BundleContents contents_;
};

}  // namespace

Expected<BundleContents> write_bundle(const BundleRequest& request) {
  return Bundler(request).run();
}

Expected<std::string> snap_in(const std::string& folder) {
  std::error_code error;
  std::optional<std::string> found;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (entries->path().extension() != ".snap") continue;
    if (found) {
      return fail(ErrorCode::Refused,
                  fmt::format("{} is no bundle: it has several snaps; name one", folder));
    }
    found = entries->path();
  }
  if (error) return io_error(folder, error.value());
  if (found) return *found;
  return fail(ErrorCode::NotFound, fmt::format("{} is no bundle: it has no snap", folder));
}

std::string debug_file_of(std::string_view build_id) {
  if (build_id.size() < 4) return {};
  return fmt::format("{}/.build-id/{}/{}.debug", target::ReadOptions().debug_directory,
                     build_id.substr(0, 2), build_id.substr(2));
}

std::string file_in_bundle(const Snap& snap, const std::string& path) {
  struct stat status {};
  const auto inside = snap.files.empty() ? std::nullopt : below(snap.files, path);
  return inside && stat(inside->c_str(), &status) == 0 ? *inside : path;
}

}  // namespace clew::recorder
