package timeskip

import (
	"math"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/temporal"
)

// withServerDefaults is the policy that the server makes of the one that a workflow
// gave. The test environment's own differs: ten attempts, constant interval.
func withServerDefaults(given *temporal.RetryPolicy) temporal.RetryPolicy {
	var p temporal.RetryPolicy
	if given != nil {
		p = *given
	}
	if p.InitialInterval == 0 {
		p.InitialInterval = time.Second
	}
	if p.BackoffCoefficient == 0 {
		p.BackoffCoefficient = 2
	}
	if p.MaximumInterval == 0 {
		p.MaximumInterval = 100 * p.InitialInterval
	}
	return p
}

// retryDelay says whether err, the outcome of the given attempt, is followed by another
// one, and after how long. It looks at the failure as the server sees it: a wrapped
// non-retryable error is an ordinary one there.
func retryDelay(p temporal.RetryPolicy, attempt int, err error) (time.Duration, bool) {
	failure := temporal.GetDefaultFailureConverter().ErrorToFailure(err)
	if !retryable(failure, p.NonRetryableErrorTypes) {
		return 0, false
	}
	if p.MaximumAttempts > 0 && attempt >= int(p.MaximumAttempts) {
		return 0, false
	}
	if asked := failure.GetApplicationFailureInfo().GetNextRetryDelay().AsDuration(); asked > 0 {
		return asked, true
	}
	backoff := float64(p.InitialInterval) * math.Pow(p.BackoffCoefficient, float64(attempt-1))
	return time.Duration(min(backoff, float64(p.MaximumInterval))), true
}

func retryable(f *failurepb.Failure, nonRetryableTypes []string) bool {
	switch {
	case f.GetCanceledFailureInfo() != nil, f.GetTerminatedFailureInfo() != nil:
		return false
	case f.GetServerFailureInfo() != nil:
		return !f.GetServerFailureInfo().GetNonRetryable()
	case f.GetTimeoutFailureInfo() != nil:
		kind := f.GetTimeoutFailureInfo().GetTimeoutType()
		return (kind == enumspb.TIMEOUT_TYPE_START_TO_CLOSE || kind == enumspb.TIMEOUT_TYPE_HEARTBEAT) &&
			!slices.Contains(nonRetryableTypes, "TemporalTimeout:"+kind.String())
	case f.GetApplicationFailureInfo() != nil:
		app := f.GetApplicationFailureInfo()
		return !app.GetNonRetryable() && !slices.Contains(nonRetryableTypes, app.GetType())
	default:
		return true
	}
}
