import { signal } from "@preact/signals";

// Requests to informerd: Status errors become ApiErrors, and whether informerd
// answers at all is remembered.

export type State = "unwatched" | "syncing" | "warm" | "live" | "stale" | "forbidden" | "failed";

interface Cause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface Status {
  message?: string;
  reason?: string;
  code?: number;
  details?: { causes?: Cause[]; retryAfterSeconds?: number };
}

export class ApiError extends Error {
  constructor(
    readonly code: number,
    readonly status: Status,
    readonly retryAfter = 0,
  ) {
    super(status.message || `HTTP ${code}`);
  }
  /** The parameter that is to blame, if one is. */
  get field(): string {
    return this.status.details?.causes?.find((c) => c.field)?.field ?? "";
  }
  /** The column in that parameter, counted from 1; 0 when it is not known. */
  get column(): number {
    const m = /\bcolumn (\d+)/.exec(this.message) ?? /<input>:1:(\d+)/.exec(this.message);
    return m ? Number(m[1]) : 0;
  }
  hasCause(reason: string): boolean {
    return !!this.status.details?.causes?.some((c) => c.reason === reason);
  }
}

/** Whether informerd answers. */
export interface Link {
  up: boolean;
  /** When it last answered (ms); 0 never. */
  last: number;
  /** Since when it has not (ms). */
  since: number;
  error: string;
}
export const link = signal<Link>({ up: true, last: 0, since: 0, error: "" });

export function answered(): void {
  const l = link.peek();
  const now = Date.now();
  // The time is kept coarse, so that not every answer redraws what shows it.
  if (!l.up || now - l.last > 1000) link.value = { up: true, last: now, since: 0, error: "" };
}

export function unanswered(error: string): void {
  const l = link.peek();
  if (l.up || l.error !== error) link.value = { up: false, last: l.last, since: l.up ? Date.now() : l.since, error };
}

/** The request did not reach informerd, or its answer did not reach us. */
export class LinkError extends Error {}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let r: Response;
  try {
    r = await fetch(path, { cache: "no-store", ...init });
  } catch (e) {
    if (init.signal?.aborted) throw e;
    unanswered("no answer");
    throw new LinkError("informerd does not answer");
  }
  answered();
  if (r.ok || r.status === 304) return r;
  throw await errorOf(r);
}

async function errorOf(r: Response): Promise<ApiError | LinkError> {
  const text = await r.text().catch(() => "");
  let status: Status = {};
  try {
    status = JSON.parse(text) as Status;
  } catch {
    // A proxy in front of informerd speaks for it when it is away.
    if (r.status === 502 || r.status === 504) {
      unanswered(`HTTP ${r.status}`);
      return new LinkError(`informerd does not answer: HTTP ${r.status}`);
    }
    status = { message: text.slice(0, 300) || `HTTP ${r.status}`, code: r.status };
  }
  return new ApiError(r.status, status, Number(r.headers.get("Retry-After") ?? 0));
}

/** What to tell a person of an error. */
export function errorText(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<{ body: T; response: Response }> {
  const response = await request(path, { signal });
  let body: T;
  try {
    body = (await response.json()) as T;
  } catch (e) {
    if (signal?.aborted) throw e;
    unanswered("the answer was cut off");
    throw new LinkError("the answer was cut off");
  }
  return { body, response };
}

export interface Meta {
  name: string;
  namespace?: string;
  uid?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  resourceVersion?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  managedFields?: unknown[];
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[];
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: Meta;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  [field: string]: any;
}

export interface FilterErrors {
  count: number;
  /** One of them, and why it has none. */
  object?: string;
  first?: string;
}

/** What a list of many resources says of one of them. */
export interface Answered {
  cluster?: string;
  resource: string;
  answered: boolean;
  resourceVersion?: string;
  filterErrors?: FilterErrors;
}

export interface List<T = KubeObject> {
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number; truncated?: boolean; filterErrors?: FilterErrors; resources?: Answered[] };
  items: T[];
}
