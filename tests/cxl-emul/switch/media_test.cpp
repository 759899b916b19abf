#include "cxl-emul/switch/media.h"

#include <csignal>
#include <fstream>
#include <functional>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {
namespace {

// What another does to a file between the punching of a hole and whatever comes next.
std::function<void()> after_a_hole;

}  // namespace
}  // namespace memtide::emul::test

// The C library's, in this program: between two system calls of another nothing else could step in on time.
extern "C" int fallocate(int fd, int mode, off_t offset, off_t length) {
    const auto result = static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, length));
    if (result == 0 && memtide::emul::test::after_a_hole) memtide::emul::test::after_a_hole();
    return result;
}

namespace memtide::emul::test {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kSize = mebibytes(8);

// A disk that has no room behind `limit` bytes of a file, until the end of the scope.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t limit) {
        std::signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit now{limit, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &now);
    }
    ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  private:
    rlimit before_{};
};

// On a disk and in memory: their holes are different.
class Media : public ::testing::TestWithParam<const char*> {
  protected:
    TemporaryFolder folder_{GetParam()};
    const std::string path_ = folder_.path() + "/device.media";
    EraseControl control_;

    std::unique_ptr<MediaFile> open() { return MediaFile::open(path_, kSize).value(); }
};
INSTANTIATE_TEST_SUITE_P(, Media, ::testing::Values("/tmp", "/dev/shm"),
                         [](const auto& info) { return info.index == 0 ? "Disk" : "Memory"; });

TEST_P(Media, IsASparseFileOfTheDevicesSize) {
    const auto media = open();
    struct stat status{};
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), kSize.value);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_EQ(allocated_bytes(path_), 0U);
}

TEST_P(Media, KeepsItsContent) {
    open();
    write_file(path_, 1'000'000, "kept");
    const auto again = open();
    EXPECT_EQ(read_file(path_, 1'000'000, 4), "kept");
}

TEST_P(Media, GrowsWithTheDeviceAndNeverShrinks) {
    open();
    write_file(path_, kSize.value - 4, "tail");
    ASSERT_TRUE(MediaFile::open(path_, kSize * 2));
    ASSERT_TRUE(MediaFile::open(path_, mebibytes(1)));
    EXPECT_EQ(read_file(path_, kSize.value - 4, 4), "tail");
}

TEST_P(Media, EraseOverwritesTheRangeAndGivesTheBlocksBack) {
    const auto media = open();
    write_file(path_, 0, std::string(kSize.value, 'x'));
    ASSERT_TRUE(media->erase(mebibytes(2), mebibytes(4), control_));
    EXPECT_EQ(control_.percent, 100U);
    const std::uint64_t mib = mebibytes(1).value;
    EXPECT_EQ(read_file(path_, 0, 2 * mib), std::string(2 * mib, 'x'));
    EXPECT_EQ(read_file(path_, 2 * mib, 4 * mib), std::string(4 * mib, '\0'));
    EXPECT_EQ(read_file(path_, 6 * mib, 2 * mib), std::string(2 * mib, 'x'));
    EXPECT_LE(allocated_bytes(path_), 4 * mib + 65536);
}

TEST_P(Media, EraseOfWhatWasNeverWrittenDoesNotFillTheDisk) {
    const auto media = open();
    ASSERT_TRUE(media->erase({0}, kSize, control_));
    EXPECT_EQ(allocated_bytes(path_), 0U);
}

TEST_P(Media, EraseStopsWhenToldTo) {
    const auto media = open();
    write_file(path_, 0, "secret");
    control_.cancel = true;
    EXPECT_EQ(media->erase({0}, kSize, control_).error().code, ErrorCode::kCancelled);
}

// A host that was not really unbound: what it writes meanwhile must not pass for erased.
TEST_P(Media, BytesWrittenWhileItIsErasedAreNoticed) {
    const auto media = open();
    write_file(path_, 0, std::string(kSize.value, 'x'));
    after_a_hole = [this] { write_file(path_, mebibytes(5).value, "secret"); };
    const auto erased = media->erase({0}, kSize, control_);
    after_a_hole = nullptr;
    ASSERT_FALSE(erased);
    EXPECT_EQ(erased.error().code, ErrorCode::kIo);
    EXPECT_THAT(erased.error().message, HasSubstr("is not zero after it was erased"));
}

// The same where nothing had been written before, and so nothing is overwritten.
TEST_P(Media, BytesWrittenFirstWhileItIsErasedAreNoticed) {
    const auto media = open();
    after_a_hole = [this] { write_file(path_, mebibytes(5).value, "secret"); };
    const auto erased = media->erase({0}, kSize, control_);
    after_a_hole = nullptr;
    ASSERT_FALSE(erased);
    EXPECT_THAT(erased.error().message, HasSubstr("is not zero after it was erased"));
}

TEST_P(Media, EraseThatCannotWriteFails) {
    const auto media = open();
    write_file(path_, mebibytes(4).value, "secret");
    const FileSizeLimit full(mebibytes(1).value);
    const auto erased = media->erase({0}, kSize, control_);
    ASSERT_FALSE(erased);
    EXPECT_EQ(erased.error().code, ErrorCode::kExhausted);
    EXPECT_THAT(erased.error().message, HasSubstr(path_));
    EXPECT_EQ(read_file(path_, mebibytes(4).value, 6), "secret");
}

TEST_P(Media, OpenOnAFullDiskFails) {
    const FileSizeLimit full(mebibytes(1).value);
    const auto media = MediaFile::open(path_, kSize);
    ASSERT_FALSE(media);
    EXPECT_EQ(media.error().code, ErrorCode::kExhausted);
    EXPECT_THAT(media.error().message, HasSubstr(path_));
}

TEST_P(Media, RemovedFileIsNoticed) {
    const auto media = open();
    ASSERT_EQ(unlink(path_.c_str()), 0);
    EXPECT_EQ(media->check().error().code, ErrorCode::kNotFound);
    EXPECT_EQ(media->erase({0}, kSize, control_).error().code, ErrorCode::kNotFound);
}

TEST_P(Media, FileThatWasReplacedOrCutShortIsNoticed) {
    const auto media = open();
    ASSERT_EQ(truncate(path_.c_str(), 4096), 0);
    EXPECT_EQ(media->check().error().code, ErrorCode::kIo);
    ASSERT_EQ(unlink(path_.c_str()), 0);
    std::ofstream(path_) << "another";
    EXPECT_EQ(media->check().error().code, ErrorCode::kNotFound);
}

TEST_P(Media, FileThatAnotherSwitchUsesIsRefused) {
    const auto media = open();
    EXPECT_EQ(MediaFile::open(path_, kSize).error().code, ErrorCode::kAlreadyExists);
}

TEST_P(Media, SymbolicLinkIsRefused) {
    const std::string target = folder_.path() + "/target";
    std::ofstream(target) << "somebody else's";
    ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
    EXPECT_EQ(MediaFile::open(path_, kSize).error().code, ErrorCode::kPermission);
}

TEST_P(Media, FileOfAnotherUserIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make a file of another user";
    std::ofstream(path_).flush();
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
    EXPECT_EQ(MediaFile::open(path_, kSize).error().code, ErrorCode::kPermission);
}

TEST_P(Media, MissingFolderIsNamed) {
    const auto media = MediaFile::open(folder_.path() + "/none/x.media", kSize);
    EXPECT_EQ(media.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(media.error().message, HasSubstr("/none/x.media"));
}

TEST_P(Media, IsRemovedWhenNoSwitchHasIt) {
    {
        const auto media = open();
        EXPECT_EQ(MediaFile::remove(path_).error().code, ErrorCode::kAlreadyExists);
    }
    EXPECT_TRUE(MediaFile::remove(path_).value());
    EXPECT_NE(access(path_.c_str(), F_OK), 0);
    EXPECT_FALSE(MediaFile::remove(path_).value());
}

TEST_P(Media, LinksAndWhatIsNoFileAreNotRemoved) {
    const auto target = folder_.path() + "/precious";
    std::ofstream(target) << "precious";
    ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
    EXPECT_EQ(MediaFile::remove(path_).error().code, ErrorCode::kPermission);
    EXPECT_EQ(access(target.c_str(), F_OK), 0);
    ASSERT_EQ(unlink(path_.c_str()), 0);
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    EXPECT_EQ(MediaFile::remove(path_).error().code, ErrorCode::kPermission);
    EXPECT_EQ(access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace memtide::emul::test
