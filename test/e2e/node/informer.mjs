// An informer of @kubernetes/client-node on the ConfigMaps of a namespace:
//
//   node informer.mjs SERVER NAMESPACE
//
// For every line of its input it prints one of JSON: UID and resourceVersion by
// name of what its cache holds, and of what its events added up to. It ends with
// its input.
import readline from 'node:readline';
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';

const [server, namespace] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromOptions({
  // Without skipTLSVerify it refuses a server that speaks plain HTTP.
  clusters: [{ name: 'informerd', server, skipTLSVerify: true }],
  users: [{ name: 'nobody' }],
  contexts: [{ name: 'informerd', cluster: 'informerd', user: 'nobody' }],
  currentContext: 'informerd',
});
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, () => api.listNamespacedConfigMap({ namespace }));

const version = ({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`;
const told = new Map();
const set = (object) => told.set(object.metadata.name, version(object));
informer.on('add', set);
informer.on('update', set);
informer.on('delete', (object) => told.delete(object.metadata.name));
// An informer ends with an error; who uses it starts it again.
informer.on('error', (error) => {
  console.error(String(error));
  setTimeout(() => informer.start(), 500);
});
informer.start();

readline.createInterface({ input: process.stdin }).on('line', () => {
  const held = Object.fromEntries(informer.list().map((object) => [object.metadata.name, version(object)]));
  console.log(JSON.stringify({ held, told: Object.fromEntries(told) }));
}).on('close', () => process.exit());
