// Brings the page up to date: loads it again when the server says that something has changed, and puts its new contents in the place of the
// old ones. Without this script, reloading does the same.
"use strict";
(() => {
  const status = document.getElementById("status");
  const waitingIn = (page) => Number(page.getElementById("status")?.dataset.waiting ?? 0);
  let waiting = waitingIn(document);

  // Writes times in the time zone of the browser.
  const localTimes = (within) => {
    for (const time of within.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      const isToday = at.toDateString() === new Date().toDateString();
      time.textContent = isToday ? at.toLocaleTimeString() : at.toLocaleString();
    }
  };

  // Offers notifications while the browser has not been asked for them.
  const offerNotifications = () => {
    const offer = document.getElementById("notify");
    if (!offer || !("Notification" in window) || Notification.permission !== "default") return;
    offer.hidden = false;
    document.getElementById("notify-button").onclick = async () => {
      await Notification.requestPermission();
      offer.hidden = true;
    };
  };

  const tellOfQuestions = (now) => {
    if (now === waiting) return;
    const text = now === 1 ? "1 call waits for your answer" : `${now} calls wait for your answer`;
    status.textContent = text;
    if (now > waiting && "Notification" in window && Notification.permission === "granted") {
      new Notification("wharf", { body: text, tag: "wharf-waiting" });
    }
    waiting = now;
  };

  // Puts the new contents in, and keeps what is open, the focus and the position.
  let [last, changedAt] = ["", -Infinity];
  const put = (page) => {
    const [main, fresh] = [document.querySelector("main"), page.querySelector("main")];
    const all = page.title + page.querySelector("nav")?.innerHTML + fresh?.innerHTML;
    if (!fresh || all === last) return;
    last = all;
    // What was done is read out once.
    for (const outcome of fresh.querySelectorAll(".outcome")) outcome.removeAttribute("role");
    document.title = page.title;
    const fromNav = document.activeElement?.closest("nav") ? document.activeElement.id : "";
    document.querySelector("nav").replaceChildren(...page.querySelector("nav").childNodes);
    if (fromNav) document.getElementById(fromNav)?.focus({ preventScroll: true });
    tellOfQuestions(waitingIn(page));
    localTimes(fresh);
    for (const open of main.querySelectorAll("details[open]")) {
      const same = open.id && fresh.querySelector(`#${CSS.escape(open.id)}`);
      if (same) same.open = true;
    }
    const focused = main.contains(document.activeElement) ? document.activeElement.id : "";
    const scrolled = [...main.querySelectorAll("pre")].map((one) => [one.textContent, one.scrollTop]);
    const [x, y] = [window.scrollX, window.scrollY];
    main.replaceChildren(...fresh.childNodes);
    for (const [text, top] of scrolled) {
      const same = [...main.querySelectorAll("pre")].find((one) => one.textContent === text);
      if (same) same.scrollTop = top;
    }
    window.scrollTo(x, y);
    changedAt = performance.now();
    if (focused) (document.getElementById(focused) ?? main).focus({ preventScroll: true });
    offerNotifications();
  };

  // A page that is read, typed into or selected in stays as it is for the moment.
  const isInUse = () => {
    const selection = document.getSelection();
    return document.activeElement?.matches("input:not([type=hidden])") || (selection && !selection.isCollapsed);
  };
  let [loads, again] = [false, false];
  const load = async () => {
    again = true;
    if (loads) return;
    loads = true;
    while (again) {
      again = false;
      try {
        const answer = await fetch(location.href, { redirect: "error" });
        if (!answer.ok) throw new Error(answer.statusText);
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        while (isInUse()) await new Promise((later) => setTimeout(later, 1000));
        put(page);
      } catch {
        status.textContent = "The page cannot be brought up to date; wharf open may have ended.";
      }
    }
    loads = false;
  };

  // A click just after a change may have been meant for what was there before.
  document.querySelector("main").addEventListener("click", (event) => {
    if (event.detail > 0 && performance.now() - changedAt < 400 && event.target.closest("button")) event.preventDefault();
  }, { capture: true });

  localTimes(document);
  offerNotifications();
  if (!("still" in document.querySelector("main").dataset)) {
    new EventSource("/events").addEventListener("changed", load);
  }
})();
