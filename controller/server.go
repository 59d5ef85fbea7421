package controller

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/scheduling/snapshot"
)

// longestWait limits a long poll.
const longestWait = 30 * time.Second

// Server is the controller's API over HTTPS with client certificates.
type Server struct {
	service *Service
	log     *slog.Logger
	mux     *http.ServeMux
	api     huma.API
}

// NewServer answers the API of a service.
func NewServer(service *Service, log *slog.Logger) *Server {
	config := huma.DefaultConfig("XCE Elastic controller", "1")
	config.OpenAPIPath, config.DocsPath, config.SchemasPath, config.CreateHooks = "", "", "", nil
	s := &Server{service: service, log: log, mux: http.NewServeMux()}
	s.api = humago.New(s.mux, config)
	s.routes()
	return s
}

// OpenAPI answers the description of the API, made from its Go types.
func (s *Server) OpenAPI() ([]byte, error) { return json.MarshalIndent(s.api.OpenAPI(), "", "  ") }

// Handler answers the API's handler; it trusts the connection's TLS state.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.authenticate) }

// peerKey is where a request's context keeps its peer.
type peerKey struct{}

// authenticate reads who calls; a caller without a readable certificate gets no
// further than to where a token lets in.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) {
	defer s.logPanic(r)
	peer, err := pki.PeerOf(r.TLS)
	if err != nil && r.URL.Path != api.PostJoin.Path {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	ctx := context.WithValue(r.Context(), peerKey{}, peer)
	if peer.Role == string(api.Provisioner) {
		claim, err := api.ReadClaim(r.Header.Get(api.LeaseHeader))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx = actingAs(ctx, peer.Name, claim)
	}
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}

// logPanic logs a fault of ours and ends the call; the caller sees it cut short.
func (s *Server) logPanic(r *http.Request) {
	if fault := recover(); fault != nil {
		s.log.Error("call panicked", "call", r.Method+" "+r.URL.Path, "panic", fault, "stack", string(debug.Stack()))
		panic(http.ErrAbortHandler)
	}
}

func peerOf(ctx context.Context) pki.Peer {
	peer, _ := ctx.Value(peerKey{}).(pki.Peer)
	return peer
}

// handle registers one route with its roles. What a handler is not registered
// for, no one can call.
func handle[I, O any](s *Server, route api.Route, handler func(context.Context, *I) (*O, error)) {
	guard := func(ctx huma.Context, next func(huma.Context)) {
		peer := peerOf(ctx.Context())
		if !route.Permits(api.Role(peer.Role)) || !ownsPath(peer, ctx) {
			_ = huma.WriteErr(s.api, ctx, http.StatusForbidden, fmt.Sprintf("%s may not call %s", peer, route.ID))
			return
		}
		next(ctx)
	}
	huma.Register(s.api, huma.Operation{
		OperationID: route.ID, Method: route.Method, Path: route.Path, Summary: route.Summary,
		Middlewares: huma.Middlewares{guard}, RejectUnknownQueryParameters: true,
	}, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		return out, s.answer(ctx, route, err)
	})
}

// ownsPath lets a host speak for itself only.
func ownsPath(peer pki.Peer, ctx huma.Context) bool {
	host := ctx.Param("host")
	return host == "" || host == peer.Name
}

// answer turns an error of the service into an answer of the API. What is not
// the caller's doing is logged here, once.
func (s *Server) answer(ctx context.Context, route api.Route, err error) error {
	var refused *Refused
	var problems cluster.Problems
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return huma.NewError(refused.Status, refused.Text)
	case errors.As(err, &problems):
		details := make([]error, len(problems))
		for i, p := range problems {
			details[i] = &huma.ErrorDetail{Location: p.Path, Message: p.What + "; " + p.Remedy}
		}
		return huma.NewError(http.StatusUnprocessableEntity, "refused", details...)
	case ctx.Err() != nil:
		return huma.NewError(http.StatusServiceUnavailable, "the call was cancelled")
	}
	s.log.Error("call failed", "call", route.ID, "error", err)
	return huma.NewError(http.StatusInternalServerError, route.ID+" failed; the controller's log says why")
}

type body[T any] struct{ Body T }

type none struct{}

func (s *Server) routes() {
	s.readRoutes()
	s.sessionRoutes()
	s.ledgerRoutes()
	s.elasticRoutes()
	s.leaseRoutes()
	s.hostRoutes()
	sv := s.service
	handle(s, api.SubmitJob, func(ctx context.Context, in *body[cluster.JobSpec]) (*body[cluster.Job], error) {
		job, err := sv.Submit(ctx, peerOf(ctx).String(), in.Body)
		return &body[cluster.Job]{job}, err
	})
	handle(s, api.SetOwned, func(ctx context.Context, in *struct {
		Name string `path:"name"`
		Body api.Owned
	},
	) (*none, error) {
		return nil, sv.SetOwned(ctx, peerOf(ctx).String(), in.Name, in.Body)
	})
	handle(s, api.PutLend, func(ctx context.Context, in *struct {
		ID   string `path:"id"`
		Body api.LendUnits
	},
	) (*none, error) {
		return nil, sv.Lend(ctx, peerOf(ctx).String(), in.ID, in.Body)
	})
}

// Poll is the query of a long poll.
type Poll struct {
	After  int64 `query:"after" minimum:"0" doc:"the revision already known"`
	WaitMS int64 `query:"wait_ms" minimum:"0" doc:"how long to wait for a change, in milliseconds"`
}

func (p Poll) context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(min(p.WaitMS, longestWait.Milliseconds()))*time.Millisecond)
}

func (s *Server) readRoutes() {
	sv := s.service
	handle(s, api.GetStatus, func(ctx context.Context, _ *none) (*body[api.Status], error) {
		st, err := sv.Status(ctx)
		return &body[api.Status]{st}, err
	})
	handle(s, api.GetChanges, func(ctx context.Context, in *Poll) (*body[api.Changes], error) {
		wait, cancel := in.context(ctx)
		defer cancel()
		changes, err := sv.Changes(ctx, wait, in.After)
		return &body[api.Changes]{changes}, err
	})
	handle(s, api.GetJobs, func(ctx context.Context, in *struct {
		State string `query:"state" enum:",waiting,running,done,failed,timeout"`
	},
	) (*body[[]cluster.Job], error) {
		jobs, err := sv.Jobs(ctx, cluster.JobState(in.State))
		return &body[[]cluster.Job]{jobs}, err
	})
	handle(s, api.GetLoans, func(ctx context.Context, in *struct {
		All bool `query:"all"`
	},
	) (*body[[]cluster.Loan], error) {
		loans, err := sv.Loans(ctx, in.All)
		return &body[[]cluster.Loan]{loans}, err
	})
	handle(s, api.GetExplanation, func(ctx context.Context, in *struct {
		Kind string `query:"kind"`
		ID   string `query:"id"`
	},
	) (*body[api.Explanation], error) {
		e, err := sv.Explain(ctx, in.Kind, in.ID)
		return &body[api.Explanation]{e}, err
	})
}

func (s *Server) sessionRoutes() {
	sv := s.service
	handle(s, api.GetSession, func(ctx context.Context, _ *none) (*body[api.Session], error) {
		session, err := sv.LastSession(ctx)
		return &body[api.Session]{session}, err
	})
	handle(s, api.GetSnapshot, func(ctx context.Context, _ *none) (*body[snapshot.Snapshot], error) {
		state, err := sv.Snapshot(ctx)
		return &body[snapshot.Snapshot]{state}, err
	})
	handle(s, api.GetHashedSnapshot, func(ctx context.Context, _ *none) (*body[snapshot.Snapshot], error) {
		state, err := sv.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		hashed, err := snapshot.Hash(state, rand.Reader)
		return &body[snapshot.Snapshot]{hashed}, err
	})
}

// ledgerRoute registers one kind of write to a loan's row.
func ledgerRoute[I any](s *Server, route api.Route, write func(context.Context, string, I) (api.Written, error)) {
	handle(s, route, func(ctx context.Context, in *body[I]) (*body[api.Written], error) {
		written, err := write(ctx, peerOf(ctx).String(), in.Body)
		return &body[api.Written]{written}, err
	})
}

func (s *Server) ledgerRoutes() {
	sv := s.service
	ledgerRoute(s, api.LoanIntend, sv.Intend)
	ledgerRoute(s, api.LoanCommit, sv.Commit)
	ledgerRoute(s, api.LoanRefuse, sv.Refuse)
	ledgerRoute(s, api.LoanFence, sv.Fence)
	ledgerRoute(s, api.LoanRecall, sv.Recall)
	ledgerRoute(s, api.LoanConfirm, sv.Confirm)
	handle(s, api.PutCatalog, func(ctx context.Context, in *struct {
		Provider string `path:"provider"`
		Body     api.Catalog
	},
	) (*none, error) {
		return nil, sv.PublishCatalog(ctx, peerOf(ctx).String(), in.Provider, in.Body)
	})
	handle(s, api.GetProviderView, func(ctx context.Context, in *struct {
		Provider string   `path:"provider"`
		Ask      []string `query:"ask,explode" doc:"ids of loans of which to tell whether they are closed"`
	},
	) (*body[api.ProviderView], error) {
		v, err := sv.ProviderView(ctx, in.Provider, in.Ask)
		return &body[api.ProviderView]{v}, err
	})
	handle(s, api.ReportStray, func(ctx context.Context, in *body[api.Stray]) (*none, error) {
		return nil, sv.ReportStray(ctx, peerOf(ctx).String(), in.Body)
	})
}

func (s *Server) elasticRoutes() {
	sv := s.service
	handle(s, api.HostWrite, func(ctx context.Context, in *body[api.WriteHost]) (*body[api.HostWritten], error) {
		written, err := sv.WriteHost(ctx, peerOf(ctx).String(), in.Body)
		return &body[api.HostWritten]{written}, err
	})
	handle(s, api.PostJoinToken, func(ctx context.Context, in *struct {
		Host string `query:"host" required:"true"`
	},
	) (*body[api.JoinToken], error) {
		token, err := sv.JoinToken(ctx, in.Host)
		return &body[api.JoinToken]{token}, err
	})
	handle(s, api.GetMachines, func(ctx context.Context, in *struct {
		Provider string `path:"provider"`
	},
	) (*body[[]api.HostMachine], error) {
		machines, err := sv.Machines(ctx, in.Provider)
		return &body[[]api.HostMachine]{machines}, err
	})
	handle(s, api.GetHosts, func(ctx context.Context, in *struct {
		All bool `query:"all"`
	},
	) (*body[[]cluster.ElasticHost], error) {
		hosts, err := sv.ElasticHosts(ctx, in.All)
		return &body[[]cluster.ElasticHost]{hosts}, err
	})
	handle(s, api.GetCatalog, func(ctx context.Context, _ *none) (*body[api.CatalogView], error) {
		v, err := sv.Catalog(ctx)
		return &body[api.CatalogView]{v}, err
	})
	handle(s, api.PostRetry, func(ctx context.Context, in *struct {
		Provider string `path:"provider"`
	},
	) (*none, error) {
		return nil, sv.RetryProvider(ctx, peerOf(ctx).String(), in.Provider)
	})
}

func (s *Server) leaseRoutes() {
	sv := s.service
	handle(s, api.PostTend, func(ctx context.Context, in *body[api.TendLeases]) (*body[api.Tended], error) {
		tended, err := sv.Tend(ctx, peerOf(ctx), in.Body)
		return &body[api.Tended]{tended}, err
	})
	handle(s, api.GetLeases, func(ctx context.Context, _ *none) (*body[api.Leases], error) {
		leases, err := sv.Leases(ctx)
		return &body[api.Leases]{leases}, err
	})
	handle(s, api.PostMove, func(ctx context.Context, in *struct {
		Provider string `path:"provider"`
		Body     api.MoveLease
	},
	) (*none, error) {
		return nil, sv.MoveLease(ctx, peerOf(ctx).String(), in.Provider, in.Body)
	})
}

func (s *Server) hostRoutes() {
	sv := s.service
	handle(s, api.PutHost, func(ctx context.Context, in *struct {
		Host string `path:"host"`
		Body api.JoinHost
	},
	) (*none, error) {
		return nil, sv.Join(ctx, peerOf(ctx), in.Body)
	})
	handle(s, api.PostJoin, func(ctx context.Context, in *body[api.JoinRequest]) (*body[api.Joined], error) {
		joined, err := sv.JoinWithToken(ctx, in.Body)
		return &body[api.Joined]{joined}, err
	})
	handle(s, api.GetAssignments, func(ctx context.Context, in *struct {
		Host string `path:"host"`
		Poll
	},
	) (*body[api.Assignments], error) {
		wait, cancel := in.context(ctx)
		defer cancel()
		a, err := sv.Assignments(ctx, wait, peerOf(ctx), in.After)
		return &body[api.Assignments]{a}, err
	})
	handle(s, api.PostJobEnd, func(ctx context.Context, in *struct {
		Host string `path:"host"`
		ID   int64  `path:"id"`
		Body api.JobEnd
	},
	) (*none, error) {
		return nil, sv.EndJob(ctx, peerOf(ctx), in.ID, in.Body)
	})
}

// Serve answers calls at the listener until ctx ends, which ends all calls too.
func (s *Server) Serve(ctx context.Context, listener net.Listener, config *tls.Config) error {
	server := &http.Server{
		Handler: s.Handler(), TLSConfig: config,
		ReadHeaderTimeout: 10 * time.Second, WriteTimeout: longestWait + 30*time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err := server.Shutdown(grace)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		stopped <- err
	}()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the API at %s: %w", listener.Addr(), err)
	}
	return <-stopped
}
