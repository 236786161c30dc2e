/** How the page of a trace looks, beside the style of its graph. */
export const PAGE_STYLE = `
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--line:#dfe3e8;--text:#1f2937;--soft:#5b6472;--ok:#15803d;--error:#dc2626;--open:#0284c7;--code:#f1f3f6}
@media (prefers-color-scheme:dark){:root{--page:#0f1419;--card:#1a2027;--line:#313a45;--text:#e5e7eb;--soft:#9aa4b2;--ok:#22c55e;--error:#f87171;--open:#38bdf8;--code:#11161c}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
main{max-width:1160px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:22px;margin:0 0 12px;overflow-wrap:anywhere}
h2{font-size:13px;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);margin:0 0 10px}
h3{font-size:12px;color:var(--soft);margin:14px 0 4px}
section,header{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin:0 0 16px}
.pill{font-size:12px;font-weight:600;border:1px solid;border-radius:99px;padding:2px 10px;vertical-align:3px}
.pill.completed{color:var(--ok)}.pill.error{color:var(--error)}.pill.active{color:var(--open)}
.facts{display:flex;flex-wrap:wrap;gap:6px 26px;margin:0}
.facts div{display:flex;gap:8px}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.prose{white-space:pre-wrap;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
svg{display:block}
.waterfall{width:100%;min-width:640px;height:auto}
.waterfall .label{font-size:13px}
.waterfall .grid{stroke:var(--line)}
.waterfall .hit{fill:transparent}
.waterfall a:hover .hit,.waterfall a:focus .hit{fill:var(--code)}
.row.ok .mark{fill:var(--ok)}.row.error .mark{fill:var(--error)}.row.pending .mark{fill:var(--open)}
.row.error .label{fill:var(--error)}
details.call{border-top:1px solid var(--line);padding:10px 0}
details.call:first-of-type{border-top:0}
details.call:target{background:var(--code);margin:0 -10px;padding:10px;border-radius:8px}
summary{cursor:pointer;display:flex;align-items:baseline;gap:10px}
summary .name{flex:1;overflow-wrap:anywhere;font-weight:600}
summary .took{color:var(--soft)}
.dot{width:9px;height:9px;border-radius:50%;background:var(--ok);flex:none}
.error .dot{background:var(--error)}.pending .dot{background:var(--open)}
.call .facts{margin:10px 0 0;font-size:13px}
.call .reason{color:var(--error);margin:8px 0 0}
pre{background:var(--code);border-radius:8px;padding:12px;margin:0;overflow:auto;max-height:420px;white-space:pre-wrap;overflow-wrap:anywhere;font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
@media print{body{background:#fff}section,header{break-inside:avoid}pre{max-height:none}}
`
