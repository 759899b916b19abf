-- Shows the CXL FM API in Wireshark: opcode, tag, return code and the payload's fields of every message, those
-- inside of tunnels too.
--   wireshark -X lua_script:memtide_fmapi.lua capture.pcap
--   tshark -X lua_script:memtide_fmapi.lua -r capture.pcap -Y 'fmapi.opcode == 0x5201' -V
-- Connections from or to TCP port 2650; others by "Decode As..." (tshark -d tcp.port==8600,fmapi). Every framing
-- that Memtide speaks is recognised (docs/fm-api.md, dialects); the protocol's preferences say it otherwise.
-- Messages whose MCTP packets are interleaved with those of others are not put together.

-- commands: generated, see docs/add-a-command.md
local opcodes = {
    [0x0001] = "Identify",
    [0x0002] = "Background Operation Status",
    [0x0003] = "Get Response Message Limit",
    [0x0004] = "Set Response Message Limit",
    [0x0005] = "Request Abort Background Operation",
    [0x0100] = "Get Event Records",
    [0x0101] = "Clear Event Records",
    [0x0102] = "Get Event Interrupt Policy",
    [0x0103] = "Set Event Interrupt Policy",
    [0x0104] = "Get MCTP Event Interrupt Policy",
    [0x0105] = "Set MCTP Event Interrupt Policy",
    [0x0106] = "Event Notification",
    [0x4000] = "Identify Memory Device",
    [0x4200] = "Get Health Info",
    [0x4400] = "Sanitize",
    [0x4401] = "Secure Erase",
    [0x4800] = "Get Dynamic Capacity Configuration",
    [0x4801] = "Get Dynamic Capacity Extent List",
    [0x4802] = "Add Dynamic Capacity Response",
    [0x4803] = "Release Dynamic Capacity",
    [0x5100] = "Identify Switch Device",
    [0x5101] = "Get Physical Port State",
    [0x5102] = "Physical Port Control",
    [0x5103] = "Send PPB CXL.io Configuration Request",
    [0x5104] = "Get Domain Validation SV State",
    [0x5105] = "Set Domain Validation SV",
    [0x5106] = "Get VCS Domain Validation SV State",
    [0x5107] = "Get Domain Validation SV",
    [0x5200] = "Get Virtual CXL Switch Info",
    [0x5201] = "Bind vPPB",
    [0x5202] = "Unbind vPPB",
    [0x5203] = "Generate AER Event",
    [0x5300] = "Tunnel Management Command",
    [0x5301] = "Send LD CXL.io Configuration Request",
    [0x5302] = "Send LD CXL.io Memory Request",
    [0x5400] = "Get LD Info",
    [0x5401] = "Get LD Allocations",
    [0x5402] = "Set LD Allocations",
    [0x5403] = "Get QoS Control",
    [0x5404] = "Set QoS Control",
    [0x5405] = "Get QoS Status",
    [0x5406] = "Get QoS Allocated Bandwidth",
    [0x5407] = "Set QoS Allocated Bandwidth",
    [0x5408] = "Get QoS Bandwidth Limit",
    [0x5409] = "Set QoS Bandwidth Limit",
    [0x5500] = "Get Multi-Headed Info",
    [0x5501] = "Get Head Info",
    [0x5600] = "Get DCD Info",
    [0x5601] = "Get Host DC Region Configuration",
    [0x5602] = "Set DC Region Configuration",
    [0x5603] = "Get DC Region Extent Lists",
    [0x5604] = "Initiate Dynamic Capacity Add",
    [0x5605] = "Initiate Dynamic Capacity Release",
    [0x5606] = "Dynamic Capacity Add Reference",
    [0x5607] = "Dynamic Capacity Remove Reference",
    [0x5608] = "Dynamic Capacity List Tags",
    [0x5700] = "Identify PBR Switch",
    [0x5705] = "Get PID Binding",
    [0x5706] = "Configure PID Binding",
}
local return_codes = {
    [0x0000] = "Success",
    [0x0001] = "Background Command Started",
    [0x0002] = "Invalid Input",
    [0x0003] = "Unsupported",
    [0x0004] = "Internal Error",
    [0x0005] = "Retry Required",
    [0x0006] = "Busy",
    [0x0007] = "Media Disabled",
    [0x0008] = "FW Transfer in Progress",
    [0x0009] = "FW Transfer Out of Order",
    [0x000a] = "FW Authentication Failed",
    [0x000b] = "Invalid Slot",
    [0x000c] = "Activation Failed, FW Rolled Back",
    [0x000d] = "Activation Failed, Cold Reset Required",
    [0x000e] = "Invalid Handle",
    [0x000f] = "Invalid Physical Address",
    [0x0010] = "Inject Poison Limit Reached",
    [0x0011] = "Permanent Media Failure",
    [0x0012] = "Aborted",
    [0x0013] = "Invalid Security State",
    [0x0014] = "Incorrect Passphrase",
    [0x0015] = "Unsupported Mailbox or CCI",
    [0x0016] = "Invalid Payload Length",
    [0x0017] = "Invalid Log",
    [0x0018] = "Interrupted",
    [0x0019] = "Unsupported Feature Version",
    [0x001a] = "Unsupported Feature Selection Value",
    [0x001b] = "Feature Transfer in Progress",
    [0x001c] = "Feature Transfer Out of Order",
    [0x001d] = "Resources Exhausted",
    [0x001e] = "Invalid Extent List",
}
local structs = {
    ["Background Operation Status response"] = {
        { "uint", "status", 1 },
        { "skip", "reserved", 1 },
        { "uint", "opcode", 2, opcodes },
        { "uint", "return_code", 2, return_codes },
        { "uint", "vendor_status", 2 },
    },
    ["Bind vPPB request"] = {
        { "uint", "vcs", 1 },
        { "uint", "vppb", 1 },
        { "uint", "port", 1 },
        { "skip", "reserved", 1 },
        { "uint", "ld", 2 },
    },
    ["Clear Event Records request"] = {
        { "uint", "log", 1, { [0] = "informational", [1] = "warning", [2] = "failure", [3] = "fatal", [4] = "dynamic-capacity" } },
        { "uint", "flags", 1 },
        { "count", "handle_count", 1, "handles" },
        { "skip", "reserved", 3 },
        { "list", "handles", 2 },
    },
    ["Configure PID Binding request"] = {
        { "uint", "operation", 1, { [0] = "bind", [1] = "unbind" } },
        { "uint", "vcs", 1 },
        { "uint", "vppb", 1 },
        { "skip", "reserved", 1 },
        { "uint", "pid", 2 },
        { "skip", "reserved", 2 },
        { "struct", "cost", 20, "route cost" },
    },
    ["DC extent"] = {
        { "uint", "dpa", 8 },
        { "uint", "length", 8 },
        { "bytes", "tag", 16 },
        { "uint", "shared_sequence", 2 },
        { "skip", "reserved", 6 },
    },
    ["DC region configuration"] = {
        { "uint", "base", 8 },
        { "uint", "decode_length", 8 },
        { "uint", "length", 8 },
        { "uint", "block_size", 8 },
        { "uint", "flags", 1 },
        { "skip", "reserved", 3 },
        { "uint", "sanitize_on_release", 1 },
        { "skip", "reserved", 3 },
    },
    ["DC region of a host"] = {
        { "uint", "base", 8 },
        { "uint", "decode_length", 8 },
        { "uint", "length", 8 },
        { "uint", "block_size", 8 },
        { "uint", "dsmad_handle", 4 },
        { "uint", "flags", 1 },
        { "skip", "reserved", 3 },
    },
    ["DC tag information"] = {
        { "bytes", "tag", 16 },
        { "uint", "flags", 1 },
        { "skip", "reserved", 3 },
        { "bytes", "references", 32 },
        { "bytes", "pending", 32 },
    },
    ["Dynamic Capacity List Tags request"] = {
        { "uint", "first", 4 },
        { "uint", "limit", 4 },
    },
    ["Dynamic Capacity List Tags response"] = {
        { "uint", "generation", 4 },
        { "uint", "total", 4 },
        { "count", "tags_returned", 4, "tags" },
        { "uint", "validity", 1 },
        { "skip", "reserved", 3 },
        { "list", "tags", 84, "DC tag information" },
    },
    ["Dynamic Capacity reference request"] = {
        { "bytes", "tag", 16 },
    },
    ["Event Notification request"] = {
        { "uint", "events", 2 },
    },
    ["Generate AER Event request"] = {
        { "uint", "vcs", 1 },
        { "uint", "vppb", 1 },
        { "skip", "reserved", 2 },
        { "uint", "error_type", 4 },
        { "bytes", "tlp_header", 32 },
    },
    ["Get DC Region Extent Lists request"] = {
        { "uint", "host", 2 },
        { "skip", "reserved", 2 },
        { "uint", "extents", 4 },
        { "uint", "first", 4 },
    },
    ["Get DC Region Extent Lists response"] = {
        { "uint", "host", 2 },
        { "skip", "reserved", 2 },
        { "uint", "first", 4 },
        { "count", "extents_returned", 4, "extents" },
        { "uint", "total", 4 },
        { "uint", "generation", 4 },
        { "skip", "reserved", 4 },
        { "list", "extents", 40, "DC extent" },
    },
    ["Get DCD Info response"] = {
        { "uint", "hosts", 1 },
        { "uint", "regions", 1 },
        { "skip", "reserved", 2 },
        { "uint", "selection_policies", 2 },
        { "skip", "reserved", 2 },
        { "uint", "removal_policies", 2 },
        { "uint", "sanitize_mask", 1 },
        { "skip", "reserved", 1 },
        { "uint", "total_capacity", 8 },
        { "list", "block_sizes", 8 },
    },
    ["Get Dynamic Capacity Configuration request"] = {
        { "uint", "regions", 1 },
        { "uint", "first_region", 1 },
    },
    ["Get Dynamic Capacity Configuration response"] = {
        { "uint", "available_regions", 1 },
        { "count", "regions_returned", 1, "regions" },
        { "skip", "reserved", 6 },
        { "list", "regions", 40, "DC region of a host" },
        { "uint", "supported_extents", 4 },
        { "uint", "available_extents", 4 },
        { "uint", "supported_tags", 4 },
        { "uint", "available_tags", 4 },
    },
    ["Get Dynamic Capacity Extent List request"] = {
        { "uint", "extents", 4 },
        { "uint", "first", 4 },
    },
    ["Get Dynamic Capacity Extent List response"] = {
        { "count", "extents_returned", 4, "extents" },
        { "uint", "total", 4 },
        { "uint", "generation", 4 },
        { "skip", "reserved", 4 },
        { "list", "extents", 40, "DC extent" },
    },
    ["Get Event Records request"] = {
        { "uint", "log", 1, { [0] = "informational", [1] = "warning", [2] = "failure", [3] = "fatal", [4] = "dynamic-capacity" } },
    },
    ["Get Event Records response"] = {
        { "uint", "flags", 1 },
        { "skip", "reserved", 1 },
        { "uint", "overflow_count", 2 },
        { "uint", "first_overflow", 8 },
        { "uint", "last_overflow", 8 },
        { "count", "record_count", 2, "records" },
        { "skip", "reserved", 10 },
        { "list", "records", 128, "event record" },
    },
    ["Get Head Info request"] = {
        { "uint", "first_head", 1 },
        { "uint", "heads", 1 },
    },
    ["Get Head Info response"] = {
        { "count", "number_of_heads", 1, "heads" },
        { "skip", "reserved", 3 },
        { "list", "heads", 9, "head information" },
    },
    ["Get Health Info response"] = {
        { "uint", "health_status", 1 },
        { "uint", "media_status", 1, { [0] = "normal", [1] = "not-ready", [2] = "persistency-lost", [3] = "data-lost", [4] = "power-loss-loses-persistency", [5] = "shutdown-loses-persistency", [6] = "persistency-loss-imminent", [7] = "power-loss-loses-data", [8] = "shutdown-loses-data", [9] = "data-loss-imminent" } },
        { "uint", "additional_status", 1 },
        { "uint", "life_used", 1 },
        { "int", "temperature", 2 },
        { "uint", "dirty_shutdowns", 4 },
        { "uint", "corrected_volatile_errors", 4 },
        { "uint", "corrected_persistent_errors", 4 },
    },
    ["Get Host DC Region Configuration request"] = {
        { "uint", "host", 2 },
        { "uint", "regions", 1 },
        { "uint", "first_region", 1 },
    },
    ["Get Host DC Region Configuration response"] = {
        { "uint", "host", 2 },
        { "uint", "available_regions", 1 },
        { "count", "regions_returned", 1, "regions" },
        { "list", "regions", 40, "DC region configuration" },
        { "uint", "supported_extents", 4 },
        { "uint", "available_extents", 4 },
        { "uint", "supported_tags", 4 },
        { "uint", "available_tags", 4 },
    },
    ["Get LD Allocations request"] = {
        { "uint", "first_ld", 1, optional = true },
        { "uint", "limit", 1, optional = true },
    },
    ["Get LD Allocations response"] = {
        { "uint", "total_lds", 1 },
        { "uint", "granularity", 1, { [0] = "256MiB", [1] = "512MiB", [2] = "1GiB" } },
        { "uint", "first_ld", 1 },
        { "count", "list_length", 1, "allocations" },
        { "list", "allocations", 16, "LD allocation" },
    },
    ["Get LD Info response"] = {
        { "uint", "memory_size", 8 },
        { "uint", "ld_count", 2 },
        { "uint", "qos_telemetry", 1 },
    },
    ["Get Multi-Headed Info request"] = {
        { "uint", "first_ld", 1 },
        { "uint", "limit", 1 },
    },
    ["Get Multi-Headed Info response"] = {
        { "uint", "total_lds", 1 },
        { "uint", "heads", 1 },
        { "skip", "reserved", 2 },
        { "uint", "first_ld", 1 },
        { "count", "ld_map_length", 1, "ld_map" },
        { "skip", "reserved", 2 },
        { "list", "ld_map", 1 },
    },
    ["Get PID Binding request"] = {
        { "uint", "vcs", 1 },
        { "uint", "vppb", 1 },
    },
    ["Get PID Binding response"] = {
        { "uint", "pid", 2 },
        { "skip", "reserved", 2 },
        { "struct", "cost", 20, "route cost" },
    },
    ["Get Physical Port State request"] = {
        { "count", "number_of_ports", 1, "ports" },
        { "list", "ports", 1 },
    },
    ["Get Physical Port State response"] = {
        { "count", "number_of_ports", 1, "ports" },
        { "skip", "reserved", 3 },
        { "list", "ports", 16, "physical port state" },
    },
    ["Get QoS Status response"] = {
        { "uint", "backpressure_average_percent", 1 },
    },
    ["Get Virtual CXL Switch Info request"] = {
        { "uint", "first_vppb", 1 },
        { "uint", "vppb_limit", 1 },
        { "count", "number_of_vcss", 1, "vcss" },
        { "list", "vcss", 1 },
    },
    ["Get Virtual CXL Switch Info response"] = {
        { "count", "number_of_vcss", 1, "vcss" },
        { "skip", "reserved", 3 },
        { "list", "vcss", 4, "VCS information block" },
    },
    ["Identify Memory Device response"] = {
        { "bytes", "firmware_revision", 16 },
        { "uint", "total_capacity", 8 },
        { "uint", "volatile_only_capacity", 8 },
        { "uint", "persistent_only_capacity", 8 },
        { "uint", "partition_alignment", 8 },
        { "uint", "informational_events", 2 },
        { "uint", "warning_events", 2 },
        { "uint", "failure_events", 2 },
        { "uint", "fatal_events", 2 },
        { "uint", "lsa_size", 4 },
        { "uint", "poison_list_max", 3 },
        { "uint", "inject_poison_limit", 2 },
        { "uint", "poison_handling", 1 },
        { "uint", "qos_telemetry", 1 },
        { "uint", "dynamic_capacity_events", 2, optional = true },
    },
    ["Identify PBR Switch response"] = {
        { "uint", "gae_vcss", 8 },
        { "uint", "drts", 1 },
        { "uint", "rgts", 1 },
        { "skip", "reserved", 1 },
        { "uint", "routing_modes", 1 },
    },
    ["Identify Switch Device response"] = {
        { "uint", "ingress_port", 1 },
        { "skip", "reserved", 1 },
        { "uint", "physical_ports", 1 },
        { "uint", "vcss", 1 },
        { "ids", "active_ports", 32 },
        { "ids", "active_vcss", 32 },
        { "uint", "total_vppbs", 2 },
        { "uint", "bound_vppbs", 2 },
        { "uint", "hdm_decoders", 1 },
    },
    ["Identify response"] = {
        { "uint", "vendor", 2 },
        { "uint", "device", 2 },
        { "uint", "subsystem_vendor", 2 },
        { "uint", "subsystem", 2 },
        { "uint", "serial", 8 },
        { "uint", "max_message_size", 1 },
        { "uint", "component_type", 1, { [0] = "switch", [3] = "type-3", [255] = "unknown" }, optional = true },
    },
    ["Initiate Dynamic Capacity Add request"] = {
        { "uint", "host", 2 },
        { "uint", "selection", 1, { [0] = "free", [1] = "contiguous", [2] = "prescriptive", [3] = "shared" } },
        { "uint", "region", 1 },
        { "uint", "length", 8 },
        { "bytes", "tag", 16 },
        { "count", "extent_count", 4, "extents" },
        { "list", "extents", 40, "DC extent" },
    },
    ["Initiate Dynamic Capacity Release request"] = {
        { "uint", "host", 2 },
        { "uint", "flags", 1 },
        { "skip", "reserved", 1 },
        { "uint", "length", 8 },
        { "bytes", "tag", 16 },
        { "count", "extent_count", 4, "extents" },
        { "list", "extents", 40, "DC extent" },
    },
    ["LD allocation"] = {
        { "uint", "range1", 8 },
        { "uint", "range2", 8 },
    },
    ["MCTP event interrupt policy"] = {
        { "uint", "settings", 2 },
    },
    ["Physical Port Control request"] = {
        { "uint", "port", 1 },
        { "uint", "operation", 1, { [0] = "assert-perst", [1] = "deassert-perst", [2] = "reset-ppb" } },
    },
    ["QoS control"] = {
        { "uint", "telemetry", 1 },
        { "uint", "egress_moderate_percent", 1 },
        { "uint", "egress_severe_percent", 1 },
        { "uint", "backpressure_sample_interval", 1 },
        { "uint", "request_completion_basis", 2 },
        { "uint", "completion_collection_interval", 1 },
    },
    ["QoS fractions"] = {
        { "count", "number_of_lds", 1, "fractions" },
        { "uint", "first_ld", 1 },
        { "list", "fractions", 1 },
    },
    ["QoS fractions request"] = {
        { "uint", "lds", 1 },
        { "uint", "first_ld", 1 },
    },
    ["Send LD CXL.io Configuration request"] = {
        { "uint", "port", 1 },
        { "uint", "access", 3 },
        { "uint", "ld", 2 },
        { "skip", "reserved", 2 },
        { "uint", "write_data", 4 },
    },
    ["Send LD CXL.io Configuration response"] = {
        { "uint", "read_data", 4 },
    },
    ["Send LD CXL.io Memory request"] = {
        { "uint", "port", 1 },
        { "uint", "access", 3 },
        { "uint", "ld", 2 },
        { "uint", "length", 2 },
        { "uint", "address", 8 },
        { "list", "write_data", 1 },
    },
    ["Send LD CXL.io Memory response"] = {
        { "count", "return_size", 2, "read_data" },
        { "skip", "reserved", 2 },
        { "list", "read_data", 1 },
    },
    ["Send PPB CXL.io Configuration request"] = {
        { "uint", "port", 1 },
        { "uint", "access", 3 },
        { "uint", "write_data", 4 },
    },
    ["Send PPB CXL.io Configuration response"] = {
        { "uint", "read_data", 4 },
    },
    ["Set DC Region Configuration request"] = {
        { "uint", "region", 1 },
        { "skip", "reserved", 3 },
        { "uint", "block_size", 8 },
        { "uint", "sanitize_on_release", 1 },
        { "skip", "reserved", 3 },
    },
    ["Set LD Allocations payload"] = {
        { "count", "number_of_lds", 1, "allocations" },
        { "uint", "first_ld", 1 },
        { "skip", "reserved", 2 },
        { "list", "allocations", 16, "LD allocation" },
    },
    ["Set MCTP Event Interrupt Policy response"] = {
        { "uint", "settings", 2, optional = true },
    },
    ["Set Response Message Limit response"] = {
        { "uint", "limit", 1, optional = true },
    },
    ["Tunnel Management Command request"] = {
        { "uint", "id", 1 },
        { "uint", "target", 1, { [0] = "port-or-ld", [1] = "ld-pool" } },
        { "count", "command_size", 2, "command" },
        { "uint", "type", 1, { [7] = "fm-api", [8] = "cci" } },
        { "list", "command", 1, bytes = true },
    },
    ["Tunnel Management Command response"] = {
        { "count", "response_size", 2, "response" },
        { "uint", "type", 1, { [7] = "fm-api", [8] = "cci" } },
        { "skip", "reserved", 1 },
        { "list", "response", 1, bytes = true },
    },
    ["Unbind vPPB request"] = {
        { "uint", "vcs", 1 },
        { "uint", "vppb", 1 },
        { "uint", "option", 1, { [0] = "wait", [1] = "managed", [2] = "surprise" } },
    },
    ["VCS information block"] = {
        { "uint", "vcs", 1 },
        { "uint", "state", 1, { [0] = "disabled", [1] = "enabled", [255] = "no-such-vcs" } },
        { "uint", "upstream_port", 1 },
        { "uint", "total_vppbs", 1 },
        { "list", "vppbs", 4, "vPPB" },
    },
    ["domain validation SV"] = {
        { "bytes", "value", 16 },
    },
    ["domain validation SV request"] = {
        { "uint", "vcs", 1 },
    },
    ["domain validation SV state"] = {
        { "uint", "state", 1, { [0] = "not-set", [1] = "set" } },
    },
    ["empty payload"] = {
    },
    ["event interrupt policy"] = {
        { "uint", "informational", 1 },
        { "uint", "warning", 1 },
        { "uint", "failure", 1 },
        { "uint", "fatal", 1 },
        { "uint", "dynamic_capacity", 1, optional = true },
    },
    ["event record"] = {
        { "bytes", "format", 16 },
        { "uint", "length", 1 },
        { "uint", "flags", 3 },
        { "uint", "handle", 2 },
        { "uint", "related_handle", 2 },
        { "uint", "timestamp", 8 },
        { "uint", "maintenance_class", 1 },
        { "uint", "maintenance_subclass", 1 },
        { "skip", "reserved", 14 },
        { "bytes", "data", 80 },
    },
    ["head information"] = {
        { "uint", "port_number", 1 },
        { "uint", "max_link_width", 1 },
        { "uint", "negotiated_link_width", 1 },
        { "uint", "supported_link_speeds", 1 },
        { "uint", "max_link_speed", 1 },
        { "uint", "current_link_speed", 1 },
        { "uint", "ltssm_state", 1 },
        { "uint", "first_lane", 1 },
        { "uint", "link_flags", 1 },
    },
    ["physical port state"] = {
        { "uint", "port", 1 },
        { "uint", "config_state", 1, { [0] = "disabled", [1] = "bind-in-progress", [2] = "unbind-in-progress", [3] = "downstream", [4] = "upstream", [5] = "fabric", [15] = "no-such-port" } },
        { "uint", "device_mode", 1, { [0] = "none", [1] = "cxl-1.1", [2] = "cxl-2.0", [3] = "cxl-256b" } },
        { "skip", "reserved", 1 },
        { "uint", "device_type", 1, { [0] = "none", [1] = "pcie", [2] = "type-1", [3] = "type-2", [4] = "type-3-sld", [5] = "type-3-mld" } },
        { "uint", "supported_cxl_modes", 1 },
        { "uint", "max_link_width", 1 },
        { "uint", "negotiated_link_width", 1 },
        { "uint", "supported_link_speeds", 1 },
        { "uint", "max_link_speed", 1 },
        { "uint", "current_link_speed", 1 },
        { "uint", "ltssm_state", 1 },
        { "uint", "first_lane", 1 },
        { "uint", "link_flags", 2 },
        { "uint", "supported_lds", 1 },
    },
    ["response message limit"] = {
        { "uint", "limit", 1 },
    },
    ["route cost"] = {
        { "uint", "latency_base_unit", 8 },
        { "uint", "latency_entry", 2 },
        { "uint", "bandwidth_base_unit", 8 },
        { "uint", "bandwidth_entry", 2 },
    },
    ["updated DC extent"] = {
        { "uint", "dpa", 8 },
        { "uint", "length", 8 },
        { "skip", "reserved", 8 },
    },
    ["updated DC extents"] = {
        { "count", "extent_count", 4, "extents" },
        { "uint", "flags", 1 },
        { "skip", "reserved", 3 },
        { "list", "extents", 24, "updated DC extent" },
    },
    ["vPPB"] = {
        { "uint", "binding", 1, { [0] = "unbound", [1] = "in-progress", [2] = "bound-port", [3] = "bound-ld", [4] = "bound-pid" } },
        { "uint", "port", 1 },
        { "uint", "ld", 1 },
        { "skip", "reserved", 1 },
    },
}
-- Request and response.
local commands = {
    [0x0001] = { "empty payload", "Identify response" },
    [0x0002] = { "empty payload", "Background Operation Status response" },
    [0x0003] = { "empty payload", "response message limit" },
    [0x0004] = { "response message limit", "Set Response Message Limit response" },
    [0x0005] = { "empty payload", "empty payload" },
    [0x0100] = { "Get Event Records request", "Get Event Records response" },
    [0x0101] = { "Clear Event Records request", "empty payload" },
    [0x0102] = { "empty payload", "event interrupt policy" },
    [0x0103] = { "event interrupt policy", "empty payload" },
    [0x0104] = { "empty payload", "MCTP event interrupt policy" },
    [0x0105] = { "MCTP event interrupt policy", "Set MCTP Event Interrupt Policy response" },
    [0x0106] = { "Event Notification request", "empty payload" },
    [0x4000] = { "empty payload", "Identify Memory Device response" },
    [0x4200] = { "empty payload", "Get Health Info response" },
    [0x4400] = { "empty payload", "empty payload" },
    [0x4401] = { "empty payload", "empty payload" },
    [0x4800] = { "Get Dynamic Capacity Configuration request", "Get Dynamic Capacity Configuration response" },
    [0x4801] = { "Get Dynamic Capacity Extent List request", "Get Dynamic Capacity Extent List response" },
    [0x4802] = { "updated DC extents", "empty payload" },
    [0x4803] = { "updated DC extents", "empty payload" },
    [0x5100] = { "empty payload", "Identify Switch Device response" },
    [0x5101] = { "Get Physical Port State request", "Get Physical Port State response" },
    [0x5102] = { "Physical Port Control request", "empty payload" },
    [0x5103] = { "Send PPB CXL.io Configuration request", "Send PPB CXL.io Configuration response" },
    [0x5104] = { "empty payload", "domain validation SV state" },
    [0x5105] = { "domain validation SV", "empty payload" },
    [0x5106] = { "domain validation SV request", "domain validation SV state" },
    [0x5107] = { "domain validation SV request", "domain validation SV" },
    [0x5200] = { "Get Virtual CXL Switch Info request", "Get Virtual CXL Switch Info response" },
    [0x5201] = { "Bind vPPB request", "empty payload" },
    [0x5202] = { "Unbind vPPB request", "empty payload" },
    [0x5203] = { "Generate AER Event request", "empty payload" },
    [0x5300] = { "Tunnel Management Command request", "Tunnel Management Command response" },
    [0x5301] = { "Send LD CXL.io Configuration request", "Send LD CXL.io Configuration response" },
    [0x5302] = { "Send LD CXL.io Memory request", "Send LD CXL.io Memory response" },
    [0x5400] = { "empty payload", "Get LD Info response" },
    [0x5401] = { "Get LD Allocations request", "Get LD Allocations response" },
    [0x5402] = { "Set LD Allocations payload", "Set LD Allocations payload" },
    [0x5403] = { "empty payload", "QoS control" },
    [0x5404] = { "QoS control", "QoS control" },
    [0x5405] = { "empty payload", "Get QoS Status response" },
    [0x5406] = { "QoS fractions request", "QoS fractions" },
    [0x5407] = { "QoS fractions", "QoS fractions" },
    [0x5408] = { "QoS fractions request", "QoS fractions" },
    [0x5409] = { "QoS fractions", "QoS fractions" },
    [0x5500] = { "Get Multi-Headed Info request", "Get Multi-Headed Info response" },
    [0x5501] = { "Get Head Info request", "Get Head Info response" },
    [0x5600] = { "empty payload", "Get DCD Info response" },
    [0x5601] = { "Get Host DC Region Configuration request", "Get Host DC Region Configuration response" },
    [0x5602] = { "Set DC Region Configuration request", "empty payload" },
    [0x5603] = { "Get DC Region Extent Lists request", "Get DC Region Extent Lists response" },
    [0x5604] = { "Initiate Dynamic Capacity Add request", "empty payload" },
    [0x5605] = { "Initiate Dynamic Capacity Release request", "empty payload" },
    [0x5606] = { "Dynamic Capacity reference request", "empty payload" },
    [0x5607] = { "Dynamic Capacity reference request", "empty payload" },
    [0x5608] = { "Dynamic Capacity List Tags request", "Dynamic Capacity List Tags response" },
    [0x5700] = { "empty payload", "Identify PBR Switch response" },
    [0x5705] = { "Get PID Binding request", "Get PID Binding response" },
    [0x5706] = { "Configure PID Binding request", "empty payload" },
}
-- commands: end

-- Lists whose length neither a field nor the end of the payload says.
local lengths = {
    ["Get DCD Info response.block_sizes"] = function() return 8 end,
    ["Send LD CXL.io Memory request.write_data"] = function(values)
        return values.access >= 0x800000 and values.length or 0
    end,
    ["VCS information block.vppbs"] = function(values, asked)
        if values.state == 0xff then return 0 end
        local first, limit = asked and asked.first_vppb or 0, asked and asked.vppb_limit or 255
        return math.max(0, math.min(values.total_vppbs - first, limit))
    end,
}
-- Lists of bytes that are messages.
local tunnels = {
    ["Tunnel Management Command request.command"] = true,
    ["Tunnel Management Command response.response"] = true,
}

local fmapi = Proto("fmapi", "CXL Fabric Manager API")
local kPort = 2650
local kHeader, kLargest = 12, 65536
local kPacketHeader, kPacketPayload = 4, 64
local kControl, kFmApi, kCci = 0x00, 0x07, 0x08

local categories = { [0] = "request", [1] = "response" }
local header = {
    frame_length = ProtoField.uint32("fmapi.frame_length", "Frame length"),
    destination = ProtoField.uint8("fmapi.mctp.destination", "Destination endpoint"),
    source = ProtoField.uint8("fmapi.mctp.source", "Source endpoint"),
    mctp_tag = ProtoField.uint8("fmapi.mctp.tag", "MCTP tag"),
    type = ProtoField.uint8("fmapi.mctp.type", "Message type", base.HEX,
        { [kControl] = "MCTP control", [kFmApi] = "FM API", [kCci] = "CCI" }),
    packets = ProtoField.uint32("fmapi.mctp.packets", "MCTP packets"),
    category = ProtoField.uint8("fmapi.category", "Category", base.DEC, categories),
    tag = ProtoField.uint8("fmapi.tag", "Tag"),
    opcode = ProtoField.uint16("fmapi.opcode", "Opcode", base.HEX, opcodes),
    length = ProtoField.uint32("fmapi.length", "Payload length"),
    background = ProtoField.bool("fmapi.background", "Background operation started"),
    return_code = ProtoField.uint16("fmapi.return_code", "Return code", base.HEX, return_codes),
    vendor_status = ProtoField.uint16("fmapi.vendor_status", "Vendor status", base.HEX),
    response_in = ProtoField.framenum("fmapi.response_in", "Response in", base.NONE, frametype.RESPONSE),
    response_to = ProtoField.framenum("fmapi.response_to", "Response to", base.NONE, frametype.REQUEST),
    response_time = ProtoField.relative_time("fmapi.response_time", "Time from the request"),
    payload = ProtoField.bytes("fmapi.payload", "Payload"),
    tunnel = ProtoField.none("fmapi.tunnel", "Message in the tunnel"),
    trailing = ProtoField.bytes("fmapi.trailing", "Behind the last field"),
}
local refused = ProtoExpert.new("fmapi.refused", "Return code other than success", expert.group.RESPONSE_CODE,
    expert.severity.NOTE)
local malformed = ProtoExpert.new("fmapi.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
fmapi.experts = { refused, malformed }

-- A field for each row of each structure: fmapi.bind_vppb_request.vcs.
local function make_field(abbreviation, row)
    local kind, name, width, values = row[1], row[2], row[3], row[4]
    if kind == "list" then kind = type(values) == "string" and "struct" or row.bytes and "bytes" or "uint" end
    if kind == "uint" or kind == "count" then
        local make = ({ ProtoField.uint8, ProtoField.uint16, ProtoField.uint24, ProtoField.uint32 })[width]
            or ProtoField.uint64
        local shown = type(values) == "table" and values or nil
        return make(abbreviation, name, base.DEC_HEX, shown)
    elseif kind == "int" then
        return (width == 1 and ProtoField.int8 or width == 2 and ProtoField.int16 or ProtoField.int32)(
            abbreviation, name)
    elseif kind == "bytes" then
        return ProtoField.bytes(abbreviation, name)
    end
    return ProtoField.none(abbreviation, name)
end

local fields = {}
for _, field in pairs(header) do table.insert(fields, field) end
for struct, rows in pairs(structs) do
    local prefix = "fmapi." .. struct:lower():gsub("[^%w]+", "_") .. "."
    for _, row in ipairs(rows) do
        if row[1] ~= "skip" then
            row.field = make_field(prefix .. row[2], row)
            table.insert(fields, row.field)
        end
    end
end
fmapi.fields = fields

fmapi.prefs.framing = Pref.enum("Framing", 0, "How messages follow each other on the stream", {
    { 1, "found out", 0 },
    { 2, "MCTP packets of 68 bytes", 1 },
    { 3, "MCTP packets of their true length", 2 },
    { 4, "frames, length little endian", 3 },
    { 5, "frames, length big endian", 4 },
}, false)
local kFixed, kTrue, kFrames, kFramesBig = 1, 2, 3, 4

local message -- below: payloads have messages in them

-- What a payload is read from: bytes up to `stop`, `at` the next one.
local function missing(cursor, width) return cursor.at + width > cursor.stop end

local read_struct, is_message

local function ids_text(range)
    local ids = {}
    for i = 0, range:len() - 1 do
        local byte = range(i, 1):uint()
        for bit = 0, 7 do
            if math.floor(byte / 2 ^ bit) % 2 == 1 then table.insert(ids, i * 8 + bit) end
        end
    end
    return #ids == 0 and "none" or table.concat(ids, ", ")
end

local function read_list(cursor, struct, row, count, tree, state)
    local name, width, of = row[2], row[3], row[4]
    if row.bytes then
        local size = math.min(count, cursor.stop - cursor.at)
        if size == 0 then return count == 0 end
        local range = cursor.tvb(cursor.at, size)
        cursor.at = cursor.at + size
        if tunnels[struct .. "." .. name] and is_message(range) then
            state.tunnelled = message(range:tvb(), tree:add(header.tunnel, range), state.inner)
        else
            tree:add(row.field, range)
        end
        return size == count
    end
    for i = 0, count - 1 do
        if missing(cursor, type(of) == "string" and 1 or width) then return false end
        if type(of) == "string" then
            local begin = cursor.at
            local branch = tree:add(row.field, cursor.tvb(begin, 1)):set_text(name .. "[" .. i .. "]")
            if not read_struct(cursor, of, branch, state) then return false end
            branch:set_len(cursor.at - begin)
        else
            tree:add_le(row.field, cursor.tvb(cursor.at, width)):prepend_text("[" .. i .. "] ")
            cursor.at = cursor.at + width
        end
    end
    return true
end

-- False when the payload ends before the structure does; everything that is there is in the tree then.
read_struct = function(cursor, struct, tree, state)
    local values, counts = {}, {}
    for _, row in ipairs(structs[struct]) do
        local kind, name, width = row[1], row[2], row[3]
        if kind == "list" then
            local length = lengths[struct .. "." .. name]
            local count = counts[name] or (length and length(values, state.asked)) or 0
            if not read_list(cursor, struct, row, count, tree, state) then return false end
        elseif kind == "struct" then
            local begin = cursor.at
            if begin >= cursor.stop then return false end
            local branch = tree:add(row.field, cursor.tvb(begin, 1)):set_text(name)
            local whole = read_struct(cursor, row[4], branch, state)
            branch:set_len(math.max(cursor.at - begin, 1))
            if not whole then return false end
        else
            if row.optional and cursor.at == cursor.stop then return true end
            if missing(cursor, width) then return false end
            local range = cursor.tvb(cursor.at, width)
            cursor.at = cursor.at + width
            if kind == "ids" then
                tree:add(row.field, range):set_text(name .. ": " .. ids_text(range))
            elseif kind == "bytes" then
                tree:add(row.field, range)
            elseif kind ~= "skip" then
                tree:add_le(row.field, range)
                if width <= 4 then values[name] = range:le_uint() end
                if kind == "count" then counts[row[4]] = values[name] end
            end
        end
    end
    for name, value in pairs(values) do state.values[name] = value end
    return true
end

-- Where peers disagree on the header, responses show it in their first byte.
local function parse_header(tvb, at)
    local first, top = tvb(at, 1):uint(), tvb(at + 7, 1):uint()
    local mirrored = first >= 0x10
    local low = tvb(at + 5, 2):le_uint()
    return {
        is_response = (mirrored and math.floor(first / 16) or first % 16) == 1,
        is_valid = first == 0x00 or first == 0x01 or first == 0x10,
        tag = tvb(at + 1, 1):uint(),
        opcode = tvb(at + 3, 2):le_uint(),
        length = low + (mirrored and math.floor(top / 8) or top % 32) * 65536,
        background = mirrored and top % 2 == 1 or not mirrored and top >= 0x80,
        return_code = tvb(at + 8, 2):le_uint(),
    }
end

is_message = function(range)
    if range:len() < kHeader then return false end
    local head = parse_header(range:tvb(), 0)
    return head.is_valid and kHeader + head.length <= range:len()
end

-- Shows one CCI message. `asked`: what is known of the request when it is a response. Returns what its own
-- response will want to know of it, and a line about it.
message = function(tvb, tree, asked)
    local head = parse_header(tvb, 0)
    local opcode = head.opcode
    if head.is_response and opcode == 0 and asked then opcode = asked.opcode end
    local name = opcodes[opcode] or "unknown command"
    tree:add(header.category, tvb(0, 1), head.is_response and 1 or 0)
    tree:add(header.tag, tvb(1, 1))
    local shown = tree:add_le(header.opcode, tvb(3, 2))
    if opcode ~= head.opcode then shown:append_text(" (the request: " .. name .. ")") end
    tree:add(header.length, tvb(5, 3), head.length)
    local line = string.format("%s %s (%04xh) tag %d", categories[head.is_response and 1 or 0], name, opcode,
        head.tag)
    local state = { asked = asked, inner = asked and asked.inner, values = {} }
    if head.is_response then
        tree:add(header.background, tvb(7, 1), head.background)
        local code = tree:add_le(header.return_code, tvb(8, 2))
        tree:add_le(header.vendor_status, tvb(10, 2))
        line = line .. ": " .. (return_codes[head.return_code] or string.format("%04xh", head.return_code))
        if head.return_code > 1 then code:add_proto_expert_info(refused) end
    end
    local cursor = { tvb = tvb, at = kHeader, stop = math.min(kHeader + head.length, tvb:len()) }
    local command = commands[opcode]
    local struct = command and command[head.is_response and 2 or 1]
    if head.is_response and head.return_code ~= 0 then struct = nil end
    local branch = tree
    if cursor.stop > kHeader then
        branch = tree:add(header.payload, tvb(kHeader, cursor.stop - kHeader))
        if struct then branch:set_text(struct) end
    end
    if struct and not read_struct(cursor, struct, branch, state) then
        branch:add_proto_expert_info(malformed, "The payload ends before its last field")
    elseif struct and cursor.at < cursor.stop then
        branch:add(header.trailing, tvb(cursor.at, cursor.stop - cursor.at))
    end
    if kHeader + head.length > tvb:len() then
        tree:add_proto_expert_info(malformed, "The message ends before its payload does")
    end
    if state.tunnelled then
        line = string.format("%s [%s]", line, opcodes[state.tunnelled.opcode] or "unknown command")
    end
    return {
        opcode = opcode,
        first_vppb = state.values.first_vppb,
        vppb_limit = state.values.vppb_limit,
        inner = state.tunnelled,
    }, line
end

-- Requests by who asked whom with which tag, and what each response answers, by where it was seen.
local requests, answered = {}, {}
-- What was found out of a connection, by its number.
local framings = {}
function fmapi.init()
    requests, answered, framings = {}, {}, {}
end

local function ends(pinfo, back)
    local from = tostring(pinfo.src) .. ":" .. pinfo.src_port
    local to = tostring(pinfo.dst) .. ":" .. pinfo.dst_port
    return back and to .. ">" .. from or from .. ">" .. to
end

-- A whole message on the stream: shows it, and ties it to its request or response.
local function converse(tvb, pinfo, tree)
    local head = parse_header(tvb, 0)
    local place = pinfo.number .. "/" .. ends(pinfo) .. "/" .. head.tag
    local key = ends(pinfo, head.is_response) .. "#" .. head.tag
    if head.is_response and not pinfo.visited then
        answered[place], requests[key] = requests[key], nil
        if answered[place] then answered[place].response = pinfo.number end
    end
    local asked = head.is_response and answered[place] or nil
    local known, line = message(tvb, tree, asked)
    if not head.is_response and not pinfo.visited then
        known.frame, known.time = pinfo.number, pinfo.rel_ts
        requests[key], answered[place] = known, known
    end
    if asked then
        tree:add(header.response_to, asked.frame):set_generated()
        local took = pinfo.rel_ts - asked.time
        tree:add(header.response_time, NSTime.new(math.floor(took), math.floor(took % 1 * 1e9 + 0.5))):set_generated()
    elseif not head.is_response and answered[place] and answered[place].response then
        tree:add(header.response_in, answered[place].response):set_generated()
    end
    return line
end

-- How the message that begins at `at` is written, as far as that is known, and its size: false when it is no
-- message, nothing as long as more has to come before that is known.
local function measure_packets(tvb, at, framing)
    local there = tvb:len() - at
    local packet = kPacketHeader + kPacketPayload
    if there < kPacketHeader + 1 then return framing, nil end
    local kind = tvb(at + 4, 1):uint()
    if tvb(at, 1):uint() ~= 1 or tvb(at + 3, 1):uint() < 0x80 then return framing, false end
    if kind == kControl then -- does not say how long it is; nobody sends more before it is answered
        local padded = framing == kFixed or framing == nil and there % packet == 0
        return framing, padded and packet or there
    end
    if kind ~= kFmApi and kind ~= kCci then return framing, false end
    if there < kPacketHeader + 1 + kHeader then return framing, nil end
    local body = 1 + kHeader + parse_header(tvb, at + kPacketHeader + 1).length
    if body > 1 + kLargest then return framing, false end
    local packets = math.ceil(body / kPacketPayload)
    local short, long = packets * kPacketHeader + body, packets * packet
    if framing == nil and short < long then
        if there < short then return nil, nil end
        framing = (there == short or tvb(at + short, 1):uint() == 1) and kTrue or kFixed
    end
    return framing, framing == kTrue and short or long
end

local function measure_frame(tvb, at, framing)
    if tvb:len() - at < 4 + kHeader then return framing, nil end
    local function fits(length) return length >= kHeader and length <= kLargest end
    local little, big = tvb(at, 4):le_uint(), tvb(at, 4):uint()
    if framing == nil then framing = fits(little) and kFrames or kFramesBig end
    local length = framing == kFrames and little or big
    if not fits(length) or not parse_header(tvb, at + 4).is_valid then return framing, false end
    return framing, 4 + length
end

local function measure(tvb, at, framing)
    if framing == kFrames or framing == kFramesBig then return measure_frame(tvb, at, framing) end
    local found, size = measure_packets(tvb, at, framing)
    if size == false and framing == nil then return measure_frame(tvb, at, nil) end
    return found, size
end

-- The message without what is around it, which is shown; nothing when it is a control message.
local function unwrap(tvb, at, size, framing, tree)
    if framing == kFrames or framing == kFramesBig then
        tree:add(header.frame_length, tvb(at, 4), size - 4)
        return tvb(at + 4, size - 4):tvb()
    end
    local flags = tvb(at + 3, 1):uint()
    tree:add(header.destination, tvb(at + 1, 1))
    tree:add(header.source, tvb(at + 2, 1))
    tree:add(header.mctp_tag, tvb(at + 3, 1), flags % 8)
    tree:add(header.type, tvb(at + 4, 1))
    if tvb(at + 4, 1):uint() == kControl then
        tree:add(header.payload, tvb(at + 5, size - 5))
        return nil
    end
    local rest = kHeader + parse_header(tvb, at + 5).length
    if rest < kPacketPayload then return tvb(at + 5, rest):tvb() end
    local bytes, place, packets = ByteArray.new(), at + 5, 1
    local part = kPacketPayload - 1
    while rest > 0 do
        bytes:append(tvb(place, part):bytes())
        rest = rest - part
        place = place + part + kPacketHeader
        part = math.min(rest, kPacketPayload)
        if rest > 0 then packets = packets + 1 end
    end
    tree:add(header.packets, tvb(at, size), packets)
    return bytes:tvb("FM API message")
end

local tcp_stream = Field.new("tcp.stream")

function fmapi.dissector(tvb, pinfo, tree)
    local stream = tcp_stream()
    local number = stream and stream.value or 0
    local framing = fmapi.prefs.framing ~= 0 and fmapi.prefs.framing or framings[number]
    local at, lines = 0, {}
    while at < tvb:len() do
        local size
        framing, size = measure(tvb, at, framing)
        if size == false then
            if at == 0 then return 0 end
            tree:add(fmapi, tvb(at)):add_proto_expert_info(malformed, "No message begins here")
            break
        end
        if size == nil or at + size > tvb:len() then
            pinfo.desegment_offset = at
            pinfo.desegment_len = size and at + size - tvb:len() or DESEGMENT_ONE_MORE_SEGMENT
            break
        end
        local branch = tree:add(fmapi, tvb(at, size))
        local inside = unwrap(tvb, at, size, framing, branch)
        local line = inside and converse(inside, pinfo, branch) or "MCTP control message"
        branch:append_text(", " .. line)
        table.insert(lines, line)
        at = at + size
    end
    framings[number] = framing
    if #lines > 0 then
        pinfo.cols.protocol = "FM API"
        pinfo.cols.info = table.concat(lines, "; ")
    end
    return tvb:len()
end

DissectorTable.get("tcp.port"):add(kPort, fmapi)
