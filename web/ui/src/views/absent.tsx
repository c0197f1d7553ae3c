import type { Resource } from "../resources";
import { absence, meaning, StateIcon } from "../ui";

// What is told of resources whose objects cannot be shown. None of it looks like
// there being none.

export function Absent({ r }: { r: Resource }) {
  return (
    <div class="absent">
      <StateIcon state={r.state} />
      <h2>{absence[r.state] ?? r.state}</h2>
      <p>
        {r.state === "forbidden" && "There may be objects, but informerd is not allowed to read them, so it cannot know."}
        {r.state === "unwatched" && "The configuration leaves this resource out, so informerd knows nothing of its objects."}
        {r.state === "syncing" && "informerd is reading them from the API server. They appear here by themselves."}
        {r.state === "failed" && "informerd could not read them."}
      </p>
      {r.reason && <p class="reason"><code>{r.reason}</code></p>}
      {r.state === "forbidden" && <p class="soft">It tries again by itself; grant <code>get</code>, <code>list</code> and <code>watch</code> on <code>{r.name}</code> to its user.</p>}
      {r.state === "unwatched" && <p class="soft">A rule in <code>config.yaml</code> with <code>match: [{r.name}]</code> above the one that says <code>watch: false</code> would change that.</p>}
      {r.state === "syncing" && <progress aria-label="listing" />}
    </div>
  );
}

export function AbsentStrip({ absent }: { absent: Resource[] }) {
  return (
    <p class="strip" role="note">
      Not included:{" "}
      {absent.slice(0, 6).map((r, i) => (
        <>
          {i > 0 && ", "}
          <span title={r.reason || meaning[r.state]}>
            <StateIcon state={r.state} /> {r.name} ({absence[r.state]?.toLowerCase() ?? r.state})
          </span>
        </>
      ))}
      {absent.length > 6 && ` and ${absent.length - 6} more`}
    </p>
  );
}
