// Browsers refuse workers of pages that are opened from a folder (file:). There the search runs in a
// hidden frame with the interface of a worker, as far as the theme uses it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      this.received = event => {
        if (event.source !== inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      addEventListener("message", this.received);
      inside.document.open();
      inside.document.write(
        "<!doctype html><body><script>postMessage = data => parent.postMessage(data, '*');",
        "importScripts = async (...urls) => { for (const url of urls) await new Promise(done => {",
        "const script = document.createElement('script'); script.src = url; script.onload = done;",
        "document.body.append(script); }); };</", "script>",
        `<script src="${url}"></`, "script></body>",
      );
      inside.document.close();
      this.ready = new Promise(done => inside.addEventListener("load", done));
    }

    postMessage(data) {
      const deliver = () =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      this.ready.then(deliver);
    }

    terminate() {
      removeEventListener("message", this.received);
      this.frame.remove();
    }
  };
}
