// SPDX-License-Identifier: Apache-2.0
#include "cluster/signing.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "cluster/base64.h"

namespace clew::cluster {
namespace {

constexpr size_t kKeyFileMax = 16384;
constexpr size_t kEndedMax = 65536;
// In front of what is signed, so that it is a signature of nothing else.
constexpr std::string_view kDomain = "clew: a query of a cluster\n";

using PkeyHandle = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using ContextHandle = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
using BioHandle = std::unique_ptr<BIO, decltype(&BIO_free_all)>;

const unsigned char* unsigned_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Digest sha256_of(std::span<const std::byte> bytes) {
  Digest digest{};
  unsigned size = 0;
  const int is_done =
      EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                 EVP_sha256(), nullptr);
  CLEW_ASSERT(is_done == 1 && size == digest.size());
  return digest;
}

// Of an Ask, what is between it and the root alone.
Digest rest_of(const Ask& ask) {
  const Ask rest{.query = ask.query,
                 .asker = ask.asker,
                 .gives = ask.gives,
                 .install_ns = ask.install_ns,
                 .root = ask.root,
                 .has_rows = ask.has_rows};
  return sha256_of(to_bytes(rest));
}

Bytes signed_bytes(SignedQuery query) {
  query.signature.bytes = {};
  const auto domain = std::as_bytes(std::span(kDomain));
  Bytes bytes(domain.begin(), domain.end());
  const Bytes message = to_bytes(query);
  bytes.insert(bytes.end(), message.begin(), message.end());
  return bytes;
}

// Of an Ask, or of the Control that a root makes of it.
template <typename T>
SignedQuery signed_of(const T& said, std::string_view tenant) {
  return {.tenant = std::string(tenant),
          .query = said.query,
          .is_wanted = said.is_wanted,
          .is_standing = said.is_standing,
          .text = said.text,
          .name_patterns = said.name_patterns,
          .labels = said.labels,
          .width_ns = said.width_ns,
          .signature = said.signature};
}

bool is_by(const PublicKey& key, std::span<const std::byte> bytes, const Signature& signature) {
  const PkeyHandle pkey(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr,
                                                    unsigned_of(std::span(key)), key.size()),
                        &EVP_PKEY_free);
  const ContextHandle context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!pkey || !context) return false;
  if (EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, pkey.get()) != 1) return false;
  return EVP_DigestVerify(context.get(), unsigned_of(std::span(signature.bytes)),
                          signature.bytes.size(), unsigned_of(bytes), bytes.size()) == 1;
}

// "12:00:03 UTC"; years that no clock shows are none.
std::string time_text(int64_t time_ns) {
  const std::time_t seconds = time_ns / 1'000'000'000;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "no time";
  return fmt::format("{:%H:%M:%S} UTC", parts);
}

int64_t held_for(bool is_standing) {
  return is_standing ? kStandingSignedForNs : kSignedForNs;
}

Expected<void> check_time(const Signature& signature, bool is_standing, int64_t now_ns) {
  int64_t length = 0;
  const bool is_too_long =
      __builtin_sub_overflow(signature.expires_ns, signature.issued_ns, &length) || length < 0 ||
      length > held_for(is_standing);
  if (is_too_long) return fail(ErrorCode::Refused, "the query is signed for too long a time");
  const bool is_early = signature.issued_ns > now_ns + kSkewNs;
  if (!is_early && now_ns < signature.expires_ns) return {};
  return fail(
      ErrorCode::Refused,
      fmt::format("the query's signature holds from {} to {}, and it is {} here: it is an old one, "
                  "or one of the clocks is wrong",
                  time_text(signature.issued_ns), time_text(signature.expires_ns),
                  time_text(now_ns)));
}

Expected<void> check(SignedQuery query, int64_t now_ns) {
  const Signature signature = query.signature;
  const bool is_standing = query.is_standing;
  if (!is_signed(signature))
    return fail(ErrorCode::Refused, "the query is not signed: clew run --sign FILE");
  if (!is_by(signature.key, signed_bytes(std::move(query)), signature)) {
    return fail(ErrorCode::Refused,
                fmt::format("the query is not what the key {} has signed, for this tenant",
                            text_of(signature.key)));
  }
  return check_time(signature, is_standing, now_ns);
}

}  // namespace

std::string text_of(const PublicKey& key) {
  std::array<unsigned char, 45> text{};
  const int size =
      EVP_EncodeBlock(text.data(), unsigned_of(std::span(key)), static_cast<int>(key.size()));
  return {text.begin(), text.begin() + size};
}

Expected<PublicKey> public_key_of(std::string_view text) {
  const std::optional<Bytes> bytes = from_base64(text);
  PublicKey key{};
  const bool is_key = bytes && bytes->size() == key.size();
  if (is_key) std::copy(bytes->begin(), bytes->end(), key.begin());
  // One that libcrypto cannot use, and the one that says that nothing is signed, are none.
  const PkeyHandle pkey(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr,
                                                    unsigned_of(std::span(key)), key.size()),
                        &EVP_PKEY_free);
  if (is_key && pkey && key != PublicKey{}) return key;
  return fail(ErrorCode::InvalidQuery, "it is no public key, as 'clew key' prints it");
}

Expected<void> SigningKey::find_public_key() {
  size_t size = public_key_.size();
  const bool is_ed25519 = EVP_PKEY_get_id(key_.get()) == EVP_PKEY_ED25519;
  const bool is_found =
      is_ed25519 &&
      EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(public_key_.data()),
                                  &size) == 1 &&
      size == public_key_.size();
  if (is_found) return {};
  return fail(ErrorCode::InvalidQuery, "it is no key of Ed25519");
}

Expected<SigningKey> SigningKey::make() {
  SigningKey key(
      std::shared_ptr<evp_pkey_st>(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), &EVP_PKEY_free));
  if (key.key_ == nullptr) return fail(ErrorCode::Io, "libcrypto makes no key");
  CLEW_TRY(key.find_public_key());
  return key;
}

Expected<SigningKey> SigningKey::read(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid())
    return fail(ErrorCode::NotFound, fmt::format("{}: {}", path, error_text(errno)));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail(ErrorCode::Refused, fmt::format("{} is no file", path));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(ErrorCode::Refused,
                fmt::format("others may read or write {}: chmod 600 makes it its owner's", path));
  }
  std::vector<char> text(kKeyFileMax);
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  const BioHandle bio(BIO_new_mem_buf(text.data(), static_cast<int>(size)), &BIO_free_all);
  // A passphrase is not asked for: commands in scripts would wait.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  SigningKey key(std::shared_ptr<evp_pkey_st>(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr), &EVP_PKEY_free));
  OPENSSL_cleanse(text.data(), text.size());
  const auto found = key.key_ == nullptr
                         ? Expected<void>(fail(ErrorCode::InvalidQuery, "it is no key in PEM"))
                         : key.find_public_key();
  if (!found) return fail(found.error().code, fmt::format("{}: {}", path, found.error().message));
  return key;
}

Expected<void> SigningKey::write(const std::string& path) const {
  const BioHandle bio(BIO_new(BIO_s_secmem()), &BIO_free_all);
  char* text = nullptr;
  const bool is_made = bio && PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0,
                                                       nullptr, nullptr) == 1;
  const int64_t size = is_made ? BIO_get_mem_data(bio.get(), &text) : 0;
  if (size <= 0) return fail(ErrorCode::Io, "libcrypto writes no key");
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  const bool is_whole = fchmod(file.get(), 0600) == 0 &&
                        ::write(file.get(), text, static_cast<size_t>(size)) == size &&
                        fsync(file.get()) == 0;
  if (is_whole) return {};
  const std::string why = error_text(errno);
  (void)unlink(path.c_str());
  return fail(ErrorCode::Io, fmt::format("{}: {}", path, why));
}

std::array<std::byte, 64> SigningKey::sign(std::span<const std::byte> bytes) const {
  std::array<std::byte, 64> signature{};
  size_t size = signature.size();
  const ContextHandle context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const bool is_done =
      context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     unsigned_of(bytes), bytes.size()) == 1;
  CLEW_ASSERT(is_done && size == signature.size());
  return signature;
}

void sign(Ask& ask, std::string_view tenant, const SigningKey& key, int64_t now_ns) {
  // A root takes none that is older than the last, so the next one is newer.
  const int64_t issued = std::max(now_ns, ask.signature.issued_ns + 1);
  ask.signature = {.key = key.public_key(),
                   .issued_ns = issued,
                   .expires_ns = issued + held_for(ask.is_standing),
                   .rest = rest_of(ask)};
  ask.signature.bytes = key.sign(signed_bytes(signed_of(ask, tenant)));
}

Expected<void> check_signature(const Ask& ask, std::string_view tenant, int64_t now_ns) {
  CLEW_TRY(check(signed_of(ask, tenant), now_ns));
  if (ask.signature.rest == rest_of(ask)) return {};
  return fail(ErrorCode::Refused, "the question is not what was signed");
}

Expected<void> check_signature(const Control& want, std::string_view tenant, int64_t now_ns) {
  return check(signed_of(want, tenant), now_ns);
}

void Ended::add(const std::string& query, int64_t now_ns) {
  if (ended_ns_.size() >= kEndedMax) {
    // What was signed longer ago holds no more.
    std::erase_if(ended_ns_,
                  [now_ns](const auto& each) { return now_ns - each.second > kSignedForNs; });
  }
  if (ended_ns_.size() >= kEndedMax) {
    ended_ns_.clear();
    all_before_ns_ = now_ns + kSkewNs;
  }
  // By a clock that may be ahead of ours.
  ended_ns_[query] = now_ns + kSkewNs;
}

bool Ended::has(const std::string& query, const Signature& signature) {
  if (signature.issued_ns <= all_before_ns_) return true;
  const auto found = ended_ns_.find(query);
  return found != ended_ns_.end() && signature.issued_ns <= found->second;
}

}  // namespace clew::cluster
