import { seconds } from "../format";
import { ageOf, type Resource } from "../resources";

/** How old the copy of a resource is, beside its state. */
export function Old({ r }: { r: Resource }) {
  const age = ageOf(r);
  return <small>{age === null ? "age not known" : seconds(age) + " old"}</small>;
}

/** The same in a column. */
export function AsOf({ r }: { r: Resource }) {
  const age = ageOf(r);
  if (age === null) return null;
  return r.provenTime ? <time dateTime={r.provenTime} title={"proven current at " + r.provenTime}>{seconds(age)}</time> : <>{seconds(age)}</>;
}
