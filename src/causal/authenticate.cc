// SPDX-License-Identifier: Apache-2.0
#include "causal/authenticate.h"

#include <algorithm>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

namespace clew::causal {
namespace {

using Authentication = std::array<std::byte, kAuthenticationBytes>;

// None: the library could not.
std::optional<Authentication> authentication_of(const Key& key, std::span<const std::byte> bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  unsigned size = 0;
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  const bool is_done = HMAC(EVP_sha256(), key.secret.data(), kSecretBytes, data, bytes.size(),
                            digest.data(), &size) != nullptr;
  if (!is_done || size != digest.size()) return std::nullopt;
  Authentication authentication{};
  std::ranges::copy(std::as_bytes(std::span(digest)).first(authentication.size()),
                    authentication.begin());
  return authentication;
}

// Takes as long for one wrong byte as for all of them.
bool is_authentic(const Key& key, std::span<const std::byte> bytes) {
  const auto written = bytes.last(kAuthenticationBytes);
  const auto expected = authentication_of(key, bytes.first(bytes.size() - kAuthenticationBytes));
  return expected && CRYPTO_memcmp(expected->data(), written.data(), written.size()) == 0;
}

// Of bytes that are not by any key of the receiver's tenant.
Refusal judge_foreign(std::span<const std::byte> bytes, const Keys& keys, uint32_t epoch,
                      Refusal otherwise) {
  const auto is_by = [bytes, epoch](const Key& key) {
    return key.epoch == epoch && is_authentic(key, bytes);
  };
  return std::ranges::any_of(keys.keys(), is_by) ? Refusal::ForeignTenant : otherwise;
}

Refusal open_checked(std::span<const std::byte> bytes, const Keys& keys, const Receiver& receiver,
                     Baggage& baggage) {
  if (bytes.empty()) return Refusal::None;
  if (bytes.size() <= kAuthenticationBytes || bytes.size() > kSealedBytesMax) return Refusal::Size;
  const auto content = bytes.first(bytes.size() - kAuthenticationBytes);
  const uint32_t epoch = key_epoch_of(content);
  const Key* const key = keys.find(receiver.tenant, epoch);
  if (key == nullptr) return judge_foreign(bytes, keys, epoch, Refusal::UnknownKey);
  if (!is_authentic(*key, bytes)) return judge_foreign(bytes, keys, epoch, Refusal::Forged);
  const Refusal refusal = read_wire(content, baggage);
  if (refusal == Refusal::None && receiver.now_s > baggage.contents().expires_s) {
    baggage.discard();
    return Refusal::Expired;
  }
  return refusal;
}

}  // namespace

Keys::~Keys() {
  const auto room = keys_.room();
  OPENSSL_cleanse(room.data(), room.size_bytes());
}

Expected<void> Keys::add(const Key& key) {
  if (key.epoch == 0 || find(key.tenant, key.epoch) != nullptr)
    return fail(ErrorCode::Refused, "a key of this tenant and epoch cannot be added");
  if (!keys_.push(key)) return fail(ErrorCode::Limit, "there are too many keys");
  return {};
}

void Keys::remove(uint32_t tenant, uint32_t epoch) {
  const Key* const key = find(tenant, epoch);
  if (key == nullptr) return;
  keys_[static_cast<size_t>(key - keys_.begin())] = keys_.back();
  OPENSSL_cleanse(&keys_.back(), sizeof(Key));
  keys_.cut(keys_.size() - 1);
}

const Key* Keys::newest(uint32_t tenant) const {
  const Key* newest = nullptr;
  for (const Key& key : keys_) {
    if (key.tenant == tenant && (newest == nullptr || key.epoch > newest->epoch)) newest = &key;
  }
  return newest;
}

const Key* Keys::find(uint32_t tenant, uint32_t epoch) const {
  const auto* const found = std::ranges::find_if(keys_, [tenant, epoch](const Key& key) {
    return key.tenant == tenant && key.epoch == epoch;
  });
  return found == keys_.end() ? nullptr : found;
}

std::optional<size_t> seal(const Baggage& baggage, const Keys& keys, uint32_t tenant,
                           std::span<std::byte> room) {
  if (baggage.is_empty()) return 0;
  const Key* const key = keys.newest(tenant);
  if (key == nullptr) return std::nullopt;
  const size_t size = write_wire(baggage, key->epoch, room);
  const auto authentication = authentication_of(*key, room.first(size));
  if (!authentication) return std::nullopt;
  CLEW_ASSERT(size + kAuthenticationBytes <= room.size());
  std::ranges::copy(*authentication, room.begin() + static_cast<std::ptrdiff_t>(size));
  return size + kAuthenticationBytes;
}

Refusal open(std::span<const std::byte> bytes, const Keys& keys, const Receiver& receiver,
             Baggage& baggage, Refusals& refusals) {
  baggage.discard();
  const Refusal refusal = open_checked(bytes, keys, receiver, baggage);
  if (refusal != Refusal::None) ++refusals[static_cast<size_t>(refusal)];
  return refusal;
}

}  // namespace clew::causal
