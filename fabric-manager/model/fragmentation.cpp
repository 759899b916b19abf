#include "fabric-manager/model/fragmentation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "fabric-manager/model/inventory.h"
#include "fabric-manager/model/placement_policy.h"

namespace memtide::fm {

namespace {

// The kMostParts largest of some sizes, largest first; a device counts once, with the best that it offers.
class Largest {
  public:
    void add(const Device* device, Bytes size) {
        if (size.value == 0) return;
        const auto same = std::ranges::find(all_, device, &Entry::device);
        if (same != all_.end() && same->size >= size) return;
        if (same != all_.end()) all_.erase(same);
        const auto at = std::ranges::upper_bound(all_, size, std::greater<>(), &Entry::size);
        all_.insert(at, {device, size});
        if (all_.size() > kMostParts) all_.pop_back();
    }
    void add(const Largest& others) {
        for (const Entry& one : others.all_) add(one.device, one.size);
    }
    [[nodiscard]] Bytes sum() const {
        Bytes sum;
        for (const Entry& one : all_) sum += one.size;
        return sum;
    }
    [[nodiscard]] Bytes first() const { return all_.empty() ? Bytes{} : all_.front().size; }

  private:
    struct Entry {
        const Device* device = nullptr;
        Bytes size;
    };
    std::vector<Entry> all_;
};

// What is behind some switches.
struct Reach {
    Bytes free;
    Largest offers;
    Largest capacities;
    std::vector<std::pair<const Device*, Bytes>> shared;  // multi-headed ones, with what is free of them

    void add(const Reach& other) {
        free += other.free;
        offers.add(other.offers);
        capacities.add(other.capacities);
        for (const auto& one : other.shared) {
            // Counted at another switch already.
            if (std::ranges::find(shared, one) != shared.end())
                free -= one.second;
            else
                shared.push_back(one);
        }
    }
    [[nodiscard]] Scatter scatter() const {
        return {free, offers.first(), offers.sum(), std::min(free, capacities.sum())};
    }
};

Reach reach_of(const Inventory& inventory, const Switch& owner) {
    Reach reach;
    for (const Device* device : inventory.devices_behind(owner.id)) {
        const PoolDevice& sums = inventory.sums(*device);
        reach.free += sums.free;
        reach.capacities.add(device, sums.capacity);
        if (!device->is_multi_headed()) {
            reach.offers.add(device, sums.largest_free);
            continue;
        }
        reach.shared.emplace_back(device, sums.free);
        for (const Head& head : device->heads)
            if (owner.up && head.switch_id == owner.id)
                reach.offers.add(device, largest_free(*device, &head));
    }
    return reach;
}

}  // namespace

double Scatter::fragmentation() const {
    if (attainable.value == 0 || largest_composition >= attainable) return 0;
    return 1 - static_cast<double>(largest_composition.value) / static_cast<double>(attainable.value);
}

Fragmentation fragmentation(const Inventory& inventory) {
    Fragmentation result;
    std::map<SwitchId, Reach> by_switch;
    for (const auto& [id, owner] : inventory.switches()) {
        const Reach& reach = by_switch[id] = reach_of(inventory, owner);
        result.switches.push_back({id, reach.scatter()});
    }
    // Many hosts reach the same switches: each set of them is looked at once.
    std::set<std::vector<const Reach*>> seen;
    std::vector<const Reach*> reached;
    for (const auto& [id, host] : inventory.hosts()) {
        reached.clear();
        for (const HostAttachment& at : host.attach) {
            const auto found = by_switch.find(at.switch_id);
            if (found != by_switch.end()) reached.push_back(&found->second);
        }
        std::ranges::sort(reached);
        const auto [first, last] = std::ranges::unique(reached);
        reached.erase(first, last);
        if (!seen.insert(reached).second) continue;
        Reach all;
        for (const Reach* one : reached) all.add(*one);
        const Scatter scatter = all.scatter();
        Scatter& total = result.total;
        total.largest_ld = std::max(total.largest_ld, scatter.largest_ld);
        total.largest_composition = std::max(total.largest_composition, scatter.largest_composition);
        total.attainable = std::max(total.attainable, scatter.attainable);
    }
    result.total.free = inventory.pool().free;
    return result;
}

}  // namespace memtide::fm
