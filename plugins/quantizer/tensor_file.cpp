// SPDX-License-Identifier: Apache-2.0
#include "tensor_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace tenon::quantizer {
namespace {

constexpr uint64_t kPage = 4096;  // file systems give back whole pages
constexpr uint64_t kInMemory = uint64_t{1} << 20;

uint64_t bytes_at(const TensorFile::Place& place) {
  return bytes_of(place.dtype, element_count(place.dims));
}

Status failed(std::string_view what) {
  const std::string why = std::error_code(errno, std::generic_category()).message();
  return {TN_RESOURCE_EXHAUSTED, cat("a temporary file for the model's activations: ", what, ": ",
                                     why, " (the variable TMPDIR names the folder)")};
}

Result<int> open_nameless() {
  std::error_code missing;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(missing);
  std::string name = (folder / "tenon-XXXXXX").string();
  const int file = missing ? -1 : mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return failed(cat("cannot make one in '", folder.string(), "'"));
  unlink(name.c_str());
  return file;
}

// All bytes by a call that may take only some of them.
template <class Call>
bool in_pieces(char* data, uint64_t bytes, uint64_t offset, Call&& call) {
  while (bytes > 0) {
    const ssize_t done = call(data, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<uint64_t>(done);
  }
  return true;
}

}  // namespace

TensorFile::~TensorFile() {
  if (file_ >= 0) close(file_);
}

Result<TensorFile::Place> TensorFile::add(const DLTensor& tensor) {
  const std::span<const int64_t> dims = shape_of(tensor);
  Place place{end_, dtype_of(tensor), {dims.begin(), dims.end()}};
  const uint64_t end = end_ + (bytes_at(place) + kPage - 1) / kPage * kPage;
  if (end <= kInMemory) {
    front_.resize(end);
  } else if (file_ < 0) {
    TN_TRY(file, open_nameless());
    file_ = file;
  }
  TN_CHECK(write(place, tensor));
  end_ = end;
  return place;
}

Status TensorFile::write(const Place& place, const DLTensor& tensor) {
  char* const data = data_of<char>(tensor);
  if (is_in_memory(place)) {
    std::copy_n(data, bytes_at(place), front_.data() + place.offset);
    return {};
  }
  const auto put = [this](char* from, uint64_t bytes, off_t offset) {
    return pwrite(file_, from, bytes, offset);
  };
  return in_pieces(data, bytes_at(place), place.offset, put) ? Status() : failed("cannot write");
}

Result<Tensor> TensorFile::read(tn_ctx* ctx, const Place& place) const {
  TN_TRY(out, Tensor::zeros(ctx, place.dtype, place.dims));
  if (is_in_memory(place)) {
    std::copy_n(front_.data() + place.offset, bytes_at(place), out.data<char>());
    return out;
  }
  const auto get = [this](char* data, uint64_t bytes, off_t offset) {
    return pread(file_, data, bytes, offset);
  };
  if (!in_pieces(out.data<char>(), bytes_at(place), place.offset, get))
    return failed("cannot read");
  return out;
}

void TensorFile::drop(const Place& place) const {
  const uint64_t pages = (bytes_at(place) + kPage - 1) / kPage * kPage;
  if (pages > 0 && !is_in_memory(place))
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place.offset),
              static_cast<off_t>(pages));
}

}  // namespace tenon::quantizer
