#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "fabric-manager/store/files.h"
#include "fabric-manager/store/store.h"

namespace memtide::fm {

// A store in a folder of its own.
class StoreFixture : public ::testing::Test {
  protected:
    StoreFixture() {
        std::string name = (std::filesystem::temp_directory_path() / "memtide-store-XXXXXX").string();
        folder = mkdtemp(name.data());
        options.path = (folder / "state.db").string();
    }
    ~StoreFixture() override { std::filesystem::remove_all(folder); }

    std::unique_ptr<Store> open() {
        Result<std::unique_ptr<Store>> store = open_sqlite_store(options);
        if (!store) throw std::runtime_error(store.error().message);
        return *std::move(store);
    }
    static Result<> apply(Store& store, Mutation mutation) {
        std::promise<Result<>> done;
        store.apply(std::move(mutation), [&](Result<> result) { done.set_value(std::move(result)); });
        return done.get_future().get();
    }
    static std::vector<Event> events(Store& store, std::uint64_t after, std::size_t limit = 100) {
        std::promise<std::vector<Event>> done;
        store.read_events({after, limit, std::nullopt},
                          [&](Result<std::vector<Event>> result) { done.set_value(*result); });
        return done.get_future().get();
    }
    static Mutation put(std::string id, std::uint64_t revision, std::string note = "") {
        Mutation mutation;
        CompositionChange change;
        change.composition.id = CompositionId(std::move(id));
        change.composition.revision = revision;
        change.composition.tenant = std::move(note);
        mutation.compositions.push_back(std::move(change));
        return mutation;
    }

    // As many compositions as said, each with an event: entries of the log after those before.
    static void fill(Store& store, int from, int to) {
        for (int i = from; i < to; ++i) {
            Mutation mutation = put("c-" + std::to_string(i), 1, std::string(500, 'x'));
            Event event;
            event.id = static_cast<std::uint64_t>(i) + 1;
            event.type = "composition.state";
            mutation.events.push_back(event);
            const Result<> ok = apply(store, mutation);
            if (!ok) throw std::runtime_error(ok.error().message);
        }
    }
    [[nodiscard]] std::string refusal() const {
        const Result<std::unique_ptr<Store>> store = open_sqlite_store(options);
        return store ? "" : store.error().message;
    }
    static std::size_t compositions(Store& store) { return store.load()->compositions.size(); }
    // What the event of a recovery says; empty when there was none.
    static std::string recovery(Store& store) {
        for (const Event& event : events(store, 0, 100'000))
            if (event.type == "store.recovered") return event.detail;
        return "";
    }
    void wait_for_snapshot() const {
        while (!file_exists(options.path + ".snapshot"))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    static std::string bytes_of(const std::string& path) { return *read_file(path); }
    static void write_bytes(const std::string& path, const std::string& bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }
    // The byte in the middle of the first place where `text` stands becomes another one.
    static void flip_in(const std::string& path, const std::string& text) {
        std::string bytes = bytes_of(path);
        const std::size_t at = bytes.find(text);
        ASSERT_NE(at, std::string::npos) << path << " has no " << text;
        char& victim = bytes[at + text.size() / 2];
        victim = static_cast<char>(victim ^ 0x20);
        write_bytes(path, bytes);
    }
    [[nodiscard]] std::string log() const { return StatePaths(options.path).logs().back(); }

    std::filesystem::path folder;
    SqliteOptions options;
};

}  // namespace memtide::fm
