package main

import (
	"fmt"
	"os"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

const (
	clusterName = "active"

	// namespaceRefresh is how soon every service sees a changed namespace.
	namespaceRefresh = time.Second

	// processorPollRPS lets the history queues be read more often than the
	// default of 20: that is some 60 ms less from start to result.
	processorPollRPS = 50
)

// temporalConfig is the server's static configuration: all services on this
// machine, found by fixed addresses instead of gossip; no metrics, no pprof,
// no archival.
func temporalConfig(p *ports, db *database, tls security) *config.Config {
	return &config.Config{
		Global: config.Global{TLS: tls.server(p.frontend.name())},
		Persistence: config.Persistence{
			DefaultStore:     sqlite.PluginName,
			VisibilityStore:  sqlite.PluginName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{sqlite.PluginName: {SQL: sqliteConfig(db)}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
				Enabled:                true,
				InitialFailoverVersion: 1,
				RPCAddress:             p.frontend.dial(),
				HTTPAddress:            p.frontendHTTP.dial(),
			}},
		},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(p.frontend, p.frontendHTTP),
			string(primitives.HistoryService):  service(p.history, nil),
			string(primitives.MatchingService): service(p.matching, nil),
			string(primitives.WorkerService):   service(p.worker, nil),
		},
		PublicClient: config.PublicClient{
			HostPort:     p.frontend.dial(),
			HTTPHostPort: p.frontendHTTP.dial(),
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
		}},
	}
}

// sqliteConfig asks for one connection. With several, SQLite answers
// "database is locked" under load.
func sqliteConfig(db *database) *config.SQL {
	cfg := &config.SQL{PluginName: sqlite.PluginName, MaxConns: 1, MaxIdleConns: 1}
	if db == nil {
		cfg.DatabaseName = fmt.Sprintf("devserver-%d", os.Getpid())
		cfg.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
		return cfg
	}
	cfg.DatabaseName = uriPath(db.path)
	cfg.ConnectAttributes = map[string]string{
		"mode":         "rw", // it exists; never make one by mistake
		"journal_mode": "wal",
		"synchronous":  "normal",
		"busy_timeout": "10000", // milliseconds; for a reader beside us
	}
	return cfg
}

func service(grpc, http *port) config.Service {
	rpc := config.RPC{GRPCPort: grpc.number(), BindOnIP: grpc.address.Addr().String()}
	if http != nil {
		rpc.HTTPPort = http.number()
	}
	return config.Service{RPC: rpc}
}

// hosts is the fixed membership of the cluster of one.
func hosts(p *ports) map[primitives.ServiceName]static.Hosts {
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(p.frontend.dial()),
		primitives.HistoryService:  static.SingleLocalHost(p.history.dial()),
		primitives.MatchingService: static.SingleLocalHost(p.matching.dial()),
		primitives.WorkerService:   static.SingleLocalHost(p.worker.dial()),
	}
}

// dynamicConfig holds the settings that differ from the server's defaults.
func dynamicConfig() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// One machine, little traffic: one partition is enough, and makes
		// dispatch predictable.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		dynamicconfig.TransferProcessorMaxPollRPS.Key():   processorPollRPS,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      processorPollRPS,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): processorPollRPS,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():   processorPollRPS,
		dynamicconfig.ArchivalProcessorMaxPollRPS.Key():   processorPollRPS,

		// A worker that stops must not be handed tasks it will not run.
		dynamicconfig.EnableCancelWorkerPollsOnShutdown.Key(): true,

		// New search attributes and namespace changes are seen soon.
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
		dynamicconfig.NamespaceCacheRefreshInterval.Key():           namespaceRefresh,

		// The default asks a public host about new versions.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
	}
}
