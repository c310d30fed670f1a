// SPDX-License-Identifier: Apache-2.0
// What the Serviceability Agent of a JDK has of the threads of a process that runs on the same JDK, again and again: of
// each line "PID TID…" of its input it attaches, writes one line of JSON, and lets the process go; a stopped one stays so.
// java_judge.py compiles and runs it, and has the format.
//
// The agent's own walk (jhsdb jstack) looks for a stack pointer from which it gets through, and so leaves out frames in
// silence; here only the step from a whole frame to its caller is the agent's, and decoding. A thread that stands
// elsewhere than in a whole frame of Java's (a prologue, a stub, a library below Java code) is said to: "torn".
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import sun.jvm.hotspot.HotSpotAgent;
import sun.jvm.hotspot.code.CodeBlob;
import sun.jvm.hotspot.code.NMethod;
import sun.jvm.hotspot.code.PCDesc;
import sun.jvm.hotspot.code.ScopeDesc;
import sun.jvm.hotspot.debugger.Address;
import sun.jvm.hotspot.debugger.DebuggerBase;
import sun.jvm.hotspot.debugger.JVMDebugger;
import sun.jvm.hotspot.debugger.ThreadContext;
import sun.jvm.hotspot.debugger.ThreadProxy;
import sun.jvm.hotspot.interpreter.InterpreterCodelet;
import sun.jvm.hotspot.runtime.Frame;
import sun.jvm.hotspot.runtime.JavaThread;
import sun.jvm.hotspot.runtime.RegisterMap;
import sun.jvm.hotspot.runtime.Threads;
import sun.jvm.hotspot.runtime.VM;

public class JavaJudge {
	private static final int R13 = 2, RBP = 10, RIP = 17, RSP = 20; // AMD64ThreadContext
	private static final int FRAMES_MAX = 5000;

	private final StringBuilder out = new StringBuilder();
	private VM vm;
	private int frames;

	// --- JSON ---

	private JavaJudge text(String value) {
		out.append('"');
		for (char c : value.toCharArray())
			if (c == '"' || c == '\\' || c < ' ' || c > '~')
				out.append(String.format("\\u%04x", (int) c));
			else
				out.append(c);
		out.append('"');
		return this;
	}

	private JavaJudge field(String name, String value) {
		out.append(",\"").append(name).append("\":");
		return text(value);
	}

	private JavaJudge field(String name, long value) {
		out.append(",\"").append(name).append("\":").append(value);
		return this;
	}

	// --- frames ---

	private static long number(Address address) {
		return VM.getVM().getDebugger().getAddressValue(address);
	}

	private static String className(sun.jvm.hotspot.oops.Method method) {
		return method.getMethodHolder().getName().asString().replace('/', '.');
	}

	// One of Java's, as an object; physical: how many machine frames there are up to it, so that inlined ones share it.
	private void javaFrame(sun.jvm.hotspot.oops.Method method, int bci, String kind, long pc, int physical) {
		out.append(frames++ == 0 ? "{\"class\":" : ",{\"class\":");
		text(className(method)).field("method", method.getName().asString());
		field("signature", method.getSignature().asString()).field("bci", bci).field("kind", kind);
		field("address", number(method.getAddress()));
		int line = bci >= 0 && !method.isNative() && method.hasLineNumberTable() ? method.getLineNumberFromBCI(bci) : 0;
		field("line", line).field("pc", pc).field("at", physical);
		sun.jvm.hotspot.oops.Symbol file = method.getMethodHolder().getSourceFileName();
		field("file", file == null ? "" : file.asString());
		out.append('}');
	}

	// HotSpot's rule for an address between two that it has noted: the next one's.
	private static PCDesc descriptor(NMethod code, Address pc, boolean isLeaf) {
		if (!isLeaf)
			return code.getPCDescAt(pc);
		PCDesc found = null;
		long size = VM.getVM().getTypeDataBase().lookupType("PcDesc").getSize();
		for (Address at = code.scopesPCsBegin(); at.lessThan(code.scopesPCsEnd()); at = at.addOffsetTo(size)) {
			PCDesc next = new PCDesc(at);
			if (next.getRealPC(code).minus(pc) >= 0 && next.getScopeDecodeOffset() > 0 &&
			    (found == null || next.getPCOffset() < found.getPCOffset()))
				found = next;
		}
		return found;
	}

	private static String tier(NMethod code) {
		try {
			int level = (int) VM.getVM().getTypeDataBase().lookupType("nmethod").getCIntegerField("_comp_level")
			                      .getValue(code.getAddress());
			return level == 4 ? "C2" : "C1";
		} catch (RuntimeException unknown) { // some have it as a byte that the agent's table has not
			return "compiled";
		}
	}

	private void compiled(NMethod code, Address pc, boolean isLeaf, int physical) {
		if (code.isNativeMethod()) {
			javaFrame(code.getMethod(), -1, "native", number(pc), physical);
			return;
		}
		PCDesc descriptor = descriptor(code, pc, isLeaf);
		if (descriptor == null) {
			javaFrame(code.getMethod(), -1, "undescribed", number(pc), physical);
			return;
		}
		String tier = tier(code);
		ScopeDesc scope = new ScopeDesc(code, descriptor.getScopeDecodeOffset(), descriptor.getObjDecodeOffset(),
		                                descriptor.getReexecute());
		for (; scope != null; scope = scope.sender())
			javaFrame(scope.getMethod(), scope.getBCI(), tier, number(pc), physical);
	}

	// The bytecode pointer is in r13 while a bytecode is at work; what the frame has is older.
	private static int interpretedAt(Frame frame, Address r13) {
		sun.jvm.hotspot.oops.Method method = frame.getInterpreterFrameMethod();
		if (method.isNative())
			return -1;
		if (r13 != null) {
			long size = VM.getVM().getTypeDataBase().lookupType("ConstMethod").getSize();
			long bci = r13.minus(method.getConstMethod().getAddress()) - size;
			if (bci >= 0 && bci < method.getCodeSize())
				return (int) bci;
		}
		return frame.getInterpreterFrameBCI();
	}

	private CodeBlob blobAt(Address pc) {
		try {
			return vm.getCodeCache().findBlobUnsafe(pc);
		} catch (RuntimeException unknown) { // of a kind that this agent has no class for
			return null;
		}
	}

	private void walk(JavaThread thread, Frame frame, boolean isLeaf, Address r13) {
		RegisterMap map = thread.newRegisterMap(false);
		for (int physical = 0; frame != null && frames < FRAMES_MAX; physical++, isLeaf = false) {
			CodeBlob blob = blobAt(frame.getPC());
			if (frame.isInterpretedFrame()) {
				javaFrame(frame.getInterpreterFrameMethod(), interpretedAt(frame, isLeaf ? r13 : null), "interpreted",
				          number(frame.getPC()), physical);
			} else if (blob instanceof NMethod) {
				compiled((NMethod) blob, frame.getPC(), isLeaf, physical);
			}
			if (frame.isFirstFrame() || (frame.isEntryFrame() && frame.entryFrameIsFirst()))
				return;
			frame = frame.sender(map, blob);
		}
	}

	// Why the frame in which the thread stands is none of which SA can tell the caller; null: it can. Writes where that
	// is so, "low" to "high"; "end" is the end of the code that this is a part of.
	private String torn(Address pc) {
		CodeBlob blob = blobAt(pc);
		if (vm.getInterpreter().contains(pc)) {
			InterpreterCodelet codelet = vm.getInterpreter().getCodeletContaining(pc);
			if (codelet == null)
				return "interpreter";
			String text = codelet.getDescription();
			if (!text.matches(".*(return|entry|throw|remove).*") || text.startsWith("return entry"))
				return null;
			long low = number(codelet.codeBegin());
			region(low, number(codelet.codeEnd()), number(codelet.codeEnd()));
			return "interpreter: " + text;
		}
		if (blob == null) {
			region(number(pc) - 64, number(pc) + 64, number(pc) + 64);
			return "stub: of a kind that the agent does not know";
		}
		long low = number(blob.codeBegin()), high = number(blob.codeEnd());
		if (!(blob instanceof NMethod)) {
			region(low, high, high);
			return "stub: " + blob.getName();
		}
		field("owner", className(((NMethod) blob).getMethod()) + "." + ((NMethod) blob).getMethod().getName().asString());
		if (!blob.isFrameCompleteAt(pc)) {
			long complete = number(pc);
			while (complete < high && !blob.isFrameCompleteAt(pc.addOffsetTo(complete - number(pc))))
				complete++;
			region(low, complete, high);
			return "prologue";
		}
		region(low, high, high);
		return ((NMethod) blob).stubContains(pc) ? "stub of the method" : isEpilogue(pc) ? "epilogue" : null;
	}

	// All code heaps, and what is between them.
	private void codeRange() {
		final long[] range = { Long.MAX_VALUE, 0 };
		vm.getCodeCache().iterate(new sun.jvm.hotspot.code.CodeCacheVisitor() {
			public void prologue(Address low, Address high) {
				range[0] = Math.min(range[0], number(low));
				range[1] = Math.max(range[1], number(high));
			}

			public void visit(CodeBlob blob) {
			}

			public void epilogue() {
			}
		});
		out.append(",\"code\":[").append(range[0]).append(',').append(range[1]).append(']');
	}

	private void region(long low, long high, long end) {
		field("low", low).field("high", high).field("end", end);
	}

	// Up to the return only instructions that tear the frame down and poll: add rsp, pop rbp, test [r15+…] or rip, ret.
	private boolean isEpilogue(Address pc) {
		byte[] code = new byte[48];
		for (int i = 0; i < code.length; i++)
			code[i] = (byte) pc.getCIntegerAt(i, 1, true);
		for (int at = 0; at < 32;) {
			int b0 = code[at] & 255, b1 = code[at + 1] & 255, b2 = code[at + 2] & 255;
			if (b0 == 0xc3 || b0 == 0xc2)
				return true;
			if (b0 == 0x5d || b0 == 0x90)
				at += 1;
			else if (b0 == 0xc5 && b1 == 0xf8 && b2 == 0x77) // vzeroupper
				at += 3;
			else if (b0 == 0x48 && b1 == 0x83 && b2 == 0xc4) // add rsp, 8 bits
				at += 4;
			else if (b0 == 0x48 && b1 == 0x81 && b2 == 0xc4) // add rsp, 32 bits
				at += 7;
			else if (b0 == 0x49 && b1 == 0x3b && b2 == 0xa7) // cmp rsp, [r15 + …]
				at += 7;
			else if (b0 == 0x48 && b1 == 0x3b && b2 == 0x67) // cmp rsp, [r15 + …] of another coding
				at += 4;
			else if (b0 == 0x0f && b1 == 0x87) // ja: the poll's slow path
				at += 6;
			else if (b0 == 0x85 && b1 == 0x05) // test [rip + …], eax
				at += 6;
			else if (b0 == 0x41 && b1 == 0x85) // test [r…], eax
				at += 3;
			else if (b0 == 0x4d && b1 == 0x8b && b2 == 0x97) // mov r10, [r15 + …]
				at += 7;
			else
				return false;
		}
		return false;
	}

	private void thread(JavaThread thread, ThreadProxy proxy, int tid) {
		ThreadContext context = proxy.getContext();
		Address pc = context.getRegisterAsAddress(RIP), sp = context.getRegisterAsAddress(RSP);
		Address fp = context.getRegisterAsAddress(RBP);
		out.append("{\"tid\":").append(tid);
		field("pc", number(pc)).field("sp", number(sp)).field("name", thread.getThreadName());
		boolean isInCode = vm.getCodeCache().contains(pc);
		boolean isCompiler = thread.getClass().getSimpleName().equals("CompilerThread"); // has no frames of Java's
		String torn = isInCode ? torn(pc) : thread.getLastJavaSP() == null && !isCompiler ? "library" : null;
		if (torn != null)
			field("torn", torn);
		if ("library".equals(torn))
			codeRange();
		out.append(",\"frames\":[");
		int start = out.length();
		frames = 0;
		try {
			if (torn == null && isInCode)
				walk(thread, frame(sp, fp, pc), true, context.getRegisterAsAddress(R13));
			else if (torn == null && !isCompiler)
				walk(thread, thread.getLastFrame(), false, null);
			out.append(']');
		} catch (ReflectiveOperationException | RuntimeException error) {
			out.setLength(start);
			out.append(']');
			field("error", String.valueOf(error));
		}
		out.append('}');
	}

	private static Frame frame(Address sp, Address fp, Address pc) throws ReflectiveOperationException {
		Class<?> type;
		try {
			type = Class.forName("sun.jvm.hotspot.runtime.x86.X86Frame");
		} catch (ClassNotFoundException newer) {
			type = Class.forName("sun.jvm.hotspot.runtime.amd64.AMD64Frame");
		}
		Constructor<?> make = type.getConstructor(Address.class, Address.class, Address.class);
		return (Frame) make.newInstance(sp, fp, pc);
	}

	// --- the process ---

	private List<JavaThread> threads() throws Exception {
		Threads all = vm.getThreads();
		List<JavaThread> found = new ArrayList<>();
		try {
			int count = (Integer) Threads.class.getMethod("getNumberOfThreads").invoke(all);
			Method get = Threads.class.getMethod("getJavaThreadAt", int.class);
			for (int i = 0; i < count; i++)
				found.add((JavaThread) get.invoke(all, i));
		} catch (NoSuchMethodException old) {
			JavaThread next = (JavaThread) Threads.class.getMethod("first").invoke(all);
			for (; next != null; next = (JavaThread) JavaThread.class.getMethod("next").invoke(next))
				found.add(next);
		}
		return found;
	}

	private static int tidOf(ThreadProxy proxy) {
		String text = proxy.toString(); // its number is in no other way there
		return Integer.parseInt(text.replaceAll("[^0-9]", ""));
	}

	private String stop(String[] tids) throws Exception {
		out.setLength(0);
		out.append("{\"threads\":[");
		boolean isFirst = true;
		for (JavaThread thread : threads()) {
			int tid = tidOf(thread.getThreadProxy());
			boolean isMeant = tids.length == 1;
			for (int i = 1; i < tids.length; i++)
				isMeant |= Integer.parseInt(tids[i]) == tid;
			if (!isMeant)
				continue;
			if (!isFirst)
				out.append(',');
			isFirst = false;
			thread(thread, thread.getThreadProxy(), tid);
		}
		return out.append("]}").toString();
	}

	private static JVMDebugger attach(JavaJudge judge, JVMDebugger debugger, int pid) throws Exception {
		if (debugger == null) {
			HotSpotAgent agent = new HotSpotAgent();
			agent.attach(pid);
			judge.vm = VM.getVM();
			return (JVMDebugger) agent.getDebugger();
		}
		debugger.attach(pid);
		Method clear = DebuggerBase.class.getDeclaredMethod("clearCache");
		clear.setAccessible(true);
		clear.invoke(debugger);
		judge.vm.fireVMSuspended();
		return debugger;
	}

	public static void main(String[] arguments) throws Exception {
		JavaJudge judge = new JavaJudge();
		JVMDebugger debugger = null;
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		for (String line; (line = in.readLine()) != null;) {
			String[] words = line.trim().split(" ");
			debugger = attach(judge, debugger, Integer.parseInt(words[0]));
			String text = judge.stop(words);
			judge.vm.fireVMResumed();
			debugger.detach();
			System.out.println(text);
			System.out.flush();
		}
		System.exit(0);
	}
}
