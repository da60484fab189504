/* SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
   SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws charts when they come into view, from the data in the page; filters tables. Text of hosts only ever becomes textContent, or is escaped for plotly. */
(function () {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const drawn = new Map();
  let printing = false;

  function escaped(text) {
    return String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  }

  /* Numbers stay in one piece with their units, on every width and on paper. */
  const figure = /(^|[^\w./:-])((?:p [=<] )?[<+-]?\d[\d.,]*(?:e[+-]?\d+)?(?:[ \u00a0](?:%|x|IOPS|[kMGTP]?B(?:\/s)?|[KM]iB|[nµm]?s|min|h|d|°C)(?!\w))?)(?![\w/:-])/g;

  function keepFigures(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
      if (/\d/.test(walker.currentNode.data) && !walker.currentNode.parentNode.closest('script, style, pre, select, svg, .q')) { found.push(walker.currentNode); }
    }
    found.forEach(function (node) {
      const parts = document.createDocumentFragment();
      let done = 0;
      node.data.replace(figure, function (_all, before, text, at) {
        const kept = document.createElement('span');
        kept.className = 'q';
        kept.textContent = text;
        parts.append(node.data.slice(done, at + before.length), kept);
        done = at + before.length + text.length;
      });
      if (done) {
        parts.append(node.data.slice(done));
        node.replaceWith(parts);
      }
    });
  }

  function setTitle(title, text) {
    title.textContent = text;
    keepFigures(title);
  }

  /* Escaped text in lines of so many characters, at spaces and hyphens as far as there are any. */
  function inLines(text, most) {
    const lines = [''];
    let length = 0;
    String(text).match(/[^ -]*[ -]?/g).forEach(function (word) {
      const signs = word.match(/&\w+;|<br>|[^]/gu) || [];
      if (length && length + signs.length > most) { lines.push(''); length = 0; }
      signs.forEach(function (sign) {
        if (length >= most) { lines.push(''); length = 0; }
        if (length || sign !== ' ') { lines[lines.length - 1] += sign; length += 1; }
      });
    });
    return lines.join('<br>');
  }

  /* Names as wide as the picture has room for: its legend and title take all of it, and the names of lines a third. */
  function fitted(chart, width) {
    const most = Math.max(12, Math.floor((width - 90) / 7.5));
    const titled = function (axis) { return Object.assign({}, axis, axis.title ? { title: Object.assign({}, axis.title, { text: inLines(axis.title.text, most) }) } : {}); };
    const layout = Object.assign({}, chart.layout, { xaxis: titled(chart.layout.xaxis), yaxis: Object.assign({}, chart.layout.yaxis) });
    if (layout.yaxis.ticktext) { layout.yaxis.ticktext = layout.yaxis.ticktext.map(function (text) { return inLines(text, Math.max(12, Math.floor(width / 3 / 7))); }); }
    return { layout: layout, data: chart.data.map(function (trace) { return trace.name ? Object.assign({}, trace, { name: inLines(trace.name, most) }) : trace; }) };
  }

  /* Margins become wider until no label is cut off at the edge of the picture. */
  function inside(box) {
    for (let tries = 0; tries < 3; tries += 1) {
      const frame = box.querySelector('svg.main-svg').getBoundingClientRect();
      const scale = frame.width ? box._fullLayout.width / frame.width : 1;
      const over = { l: 0, r: 0, t: 0, b: 0 };
      box.querySelectorAll('svg.main-svg text').forEach(function (text) {
        const one = text.getBoundingClientRect();
        if (!one.width || text.closest('.legend, .hoverlayer')) { return; }
        over.l = Math.max(over.l, frame.left - one.left);
        over.r = Math.max(over.r, one.right - frame.right);
        over.t = Math.max(over.t, frame.top - one.top);
        over.b = Math.max(over.b, one.bottom - frame.bottom);
      });
      const wider = {};
      Object.keys(over).forEach(function (side) {
        if (over[side] > 0.5) { wider['margin.' + side] = Math.ceil(box._fullLayout._size[side] + over[side] * scale + 4); }
      });
      if (!Object.keys(wider).length) { return; }
      /* It draws at once: what is printed cannot wait. */
      Plotly.relayout(box, wider);
    }
  }

  function themed(layout, narrow) {
    const isDark = dark.matches && !printing;
    const ink = isDark ? '#e6e9ed' : '#1d2127';
    const grid = isDark ? '#343b44' : '#e1e5ea';
    const themedAxis = (axis) => Object.assign({}, axis, { gridcolor: grid, linecolor: grid, tickcolor: grid, tickfont: { size: narrow ? 11 : 12 } });
    return Object.assign({}, layout, {
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: { color: ink, size: 12, family: 'system-ui, sans-serif' },
      margin: { l: narrow ? 46 : 58, r: 12, t: 10, b: 46 }, legend: { orientation: 'h', y: 1.01, yanchor: 'bottom', x: 0 },
      annotations: (layout.annotations || []).map(function (one) { return Object.assign({ bgcolor: isDark ? 'rgba(20,23,27,0.8)' : 'rgba(255,255,255,0.8)' }, one); }),
      hoverlabel: { align: 'left' }, xaxis: themedAxis(layout.xaxis), yaxis: themedAxis(layout.yaxis)
    });
  }

  /* On a dark page the first colour of variants is too dark, and what is black is white. */
  function lit(traces) {
    return dark.matches && !printing ? JSON.parse(JSON.stringify(traces).split('#0072b2').join('#3b97ea').split('#000000').join('#ffffff')) : traces;
  }

  /* On paper a chart has a width of its own, and scales to that of the page by its viewBox. */
  const paperWidth = 700;

  function draw(box, chart) {
    drawn.set(box, chart);
    const height = chart.layout.height || 0;
    box.style.height = height && !printing ? height + 'px' : '';
    const shown = fitted(chart, printing ? paperWidth : box.clientWidth);
    const layout = themed(shown.layout, printing || box.clientWidth < 480);
    if (printing) {
      layout.width = paperWidth;
      layout.height = height || 320;
      box.style.aspectRatio = layout.width + ' / ' + layout.height;
    } else {
      box.style.aspectRatio = '';
      delete layout.width;
      delete layout.height;
      layout.autosize = true;
    }
    const done = Plotly.react(box, lit(shown.data), layout, { responsive: !printing, displayModeBar: false, scrollZoom: false });
    box.querySelectorAll('svg.main-svg').forEach(function (svg) {
      if (printing) { svg.setAttribute('viewBox', '0 0 ' + layout.width + ' ' + layout.height); } else { svg.removeAttribute('viewBox'); }
    });
    inside(box);
    return done.then(function () {
      inside(box);
      box.dataset.drawn = 'yes';
    });
  }

  function redraw() {
    drawn.forEach(function (chart, box) { draw(box, chart); });
  }

  keepFigures(document.body);

  /* Charts with a name are drawn when they are nearly in view. */
  const seen = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (entry.isIntersecting) {
        seen.unobserve(entry.target);
        draw(entry.target, data.charts[entry.target.dataset.chart]);
      }
    });
  }, { rootMargin: '400px' });
  document.querySelectorAll('.chart[data-chart]').forEach(function (box) { seen.observe(box); });

  dark.addEventListener('change', redraw);
  let resized = 0;
  window.addEventListener('resize', function () {
    clearTimeout(resized);
    resized = setTimeout(function () { if (!printing) { redraw(); } }, 200);
  });
  /* One chart of a picker, by its place. */
  const makers = {};
  Object.keys(data.choices).forEach(function (name) {
    const choices = data.choices[name];
    makers[name] = { count: choices.length, chart: function (place) { return choices[place]; } };
    const box = document.getElementById(name);
    const title = document.getElementById(name + '-title');
    const select = document.querySelector('select[data-picks="' + name + '"]');
    makers[name].shown = function () { return Number(select ? select.value : box.dataset.opens); };
    const show = function () {
      const chosen = choices[makers[name].shown()];
      setTitle(title, chosen.title);
      draw(box, chosen);
    };
    if (select) { select.addEventListener('change', show); }
    whenSeen(box, show);
  });

  /* On paper everything is there: what is folded is opened, and pickers show all of their charts. */
  let folded = [];

  function unfold() {
    if (printing) { return; }
    printing = true;
    folded = Array.from(document.querySelectorAll('details:not([open])'));
    folded.forEach(function (one) { one.open = true; });
    document.querySelectorAll('.chart[data-chart]').forEach(function (box) { draw(box, data.charts[box.dataset.chart]); });
    Object.keys(makers).forEach(function (name) {
      const maker = makers[name];
      const box = document.getElementById(name);
      draw(box, maker.chart(maker.shown()));
      for (let place = 0; place < maker.count; place += 1) {
        if (place !== maker.shown()) { box.parentNode.insertBefore(printed(maker.chart(place)), box.nextSibling); }
      }
      box.parentNode.querySelectorAll('.printed .chart').forEach(function (copy) { draw(copy, copy.chosen); });
    });
  }

  function printed(chart) {
    const part = document.createElement('section');
    const title = document.createElement('h3');
    const box = document.createElement('div');
    part.className = 'printed';
    box.className = 'chart';
    setTitle(title, chart.title);
    box.chosen = chart;
    part.append(title, box);
    return part;
  }

  function fold() {
    if (!printing) { return; }
    printing = false;
    document.querySelectorAll('.printed').forEach(function (part) {
      const box = part.querySelector('.chart');
      drawn.delete(box);
      Plotly.purge(box);
      part.remove();
    });
    folded.forEach(function (one) { one.open = false; });
    redraw();
  }

  window.addEventListener('beforeprint', unfold);
  window.addEventListener('afterprint', fold);

  function whenSeen(box, act) {
    const watcher = new IntersectionObserver(function (entries) {
      if (entries.some(function (entry) { return entry.isIntersecting; })) { watcher.disconnect(); act(); }
    }, { rootMargin: '400px' });
    watcher.observe(box);
  }

  /* Every host as a mark, one strip for each variant. */
  const strips = document.getElementById('strips');
  if (strips) {
    const cell = document.getElementById('strip-cell');
    const host = document.getElementById('strip-host');
    const title = document.getElementById('strips-title');
    const named = new Set(data.outliers);
    const stripsOf = function (number) {
      const chosen = data.strips[number];
      const wanted = host.value.trim().toLowerCase();
      const traces = [];
      data.variants.forEach(function (variant, place) {
        const values = chosen.values[place];
        if (!values) { return; }
        const parts = { usual: { x: [], y: [], text: [] }, out: { x: [], y: [], text: [] } };
        values.forEach(function (value, index) {
          if (value === null) { return; }
          const name = data.hosts[index];
          if (wanted && !name.toLowerCase().includes(wanted)) { return; }
          const part = named.has(index) ? parts.out : parts.usual;
          part.x.push(value);
          /* Hosts side by side, always in the same place. */
          part.y.push(place + ((index * 0.618034) % 1 - 0.5) * 0.6);
          part.text.push(escaped(name));
        });
        const mark = data.marks[place];
        const shared = { type: 'scatter', mode: 'markers', hovertemplate: '%{text}: %{x:,.4r} ' + chosen.unit + '<extra></extra>' };
        if (parts.usual.x.length) {
          traces.push(Object.assign({}, shared, parts.usual, { name: escaped(variant), marker: Object.assign({}, mark, { size: parts.usual.x.length > 100 ? 5 : 8, opacity: 0.75 }) }));
        }
        if (parts.out.x.length) {
          traces.push(Object.assign({}, shared, parts.out, { name: escaped(variant) + ', outlier', mode: parts.out.x.length <= 6 ? 'markers+text' : 'markers', textposition: 'top center', cliponaxis: false,
            marker: Object.assign({}, mark, { size: 11, line: { width: 2, color: '#b3261e' } }) }));
        }
      });
      return { title: chosen.title, data: traces, layout: {
        xaxis: { title: { text: chosen.axis }, rangemode: 'tozero', automargin: true, zeroline: false },
        yaxis: { tickvals: data.variants.map(function (_name, place) { return place; }), ticktext: data.variants.map(escaped), automargin: true, zeroline: false, range: [data.variants.length - 0.4, -0.6] },
        hovermode: 'closest', showlegend: false } };
    };
    makers.strips = { count: data.strips.length, chart: stripsOf, shown: function () { return Number(cell.value); } };
    const showStrips = function () {
      const chosen = stripsOf(Number(cell.value));
      setTitle(title, chosen.title);
      draw(strips, chosen);
    };
    cell.addEventListener('change', showStrips);
    host.addEventListener('input', showStrips);
    whenSeen(strips, showStrips);
  }

  /* Rows of a table by text and choice. */
  document.querySelectorAll('form[data-filters]').forEach(function (form) {
    const rows = Array.from(document.querySelectorAll('#' + form.dataset.filters + ' tbody tr'));
    const count = form.querySelector('output');
    const apply = function () {
      let shown = 0;
      const text = form.elements.text.value.trim().toLowerCase();
      const direction = form.elements.direction ? form.elements.direction.value : '';
      const model = form.elements.model ? form.elements.model.value : '';
      const parts = form.elements.parts ? form.elements.parts.checked : true;
      rows.forEach(function (row) {
        const fits = (!text || row.textContent.toLowerCase().includes(text)) && (!direction || row.dataset.direction === direction) &&
          (!model || row.dataset.model === model) && (parts || row.dataset.part !== 'yes');
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      });
      count.textContent = shown + ' of ' + rows.length + ' rows';
    };
    form.addEventListener('input', apply);
    form.addEventListener('submit', function (event) { event.preventDefault(); });
    apply();
  });

  /* Hosts, a page of them at a time. */
  const hosts = document.getElementById('host-rows');
  if (hosts) {
    const find = document.getElementById('host-find');
    const count = document.getElementById('host-count');
    const most = 100;
    const showHosts = function () {
      const wanted = find.value.trim().toLowerCase();
      const fitting = data.host_rows.filter(function (row) { return !wanted || row.join(' ').toLowerCase().includes(wanted); });
      hosts.replaceChildren.apply(hosts, fitting.slice(0, most).map(function (row) {
        const line = document.createElement('tr');
        row.forEach(function (value, place) {
          const field = document.createElement('td');
          field.textContent = value === null ? '-' : value;
          if (place > 3) { field.className = 'n'; }
          if (place === 2) { field.className = value; }
          line.appendChild(field);
        });
        return line;
      }));
      keepFigures(hosts);
      count.textContent = Math.min(fitting.length, most) + ' of ' + fitting.length + ' shown' + (fitting.length > most ? ': narrow it down by text' : '');
    };
    find.addEventListener('input', showHosts);
    whenSeen(hosts.closest('.scroll'), showHosts);
  }
}());
