// SPDX-License-Identifier: Apache-2.0
// What the Serviceability Agent of a JDK has of addresses in compiled code of a stopped process on the same JDK: of each
// line "= ADDRESS" of its input that line again, and a line a call, innermost first: name, tab, file:line. java_codes.py
// compiles and runs it. Argument: the process.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import sun.jvm.hotspot.HotSpotAgent;
import sun.jvm.hotspot.code.NMethod;
import sun.jvm.hotspot.code.PCDesc;
import sun.jvm.hotspot.code.ScopeDesc;
import sun.jvm.hotspot.debugger.Address;
import sun.jvm.hotspot.oops.Method;
import sun.jvm.hotspot.oops.Symbol;
import sun.jvm.hotspot.runtime.VM;

public class JavaCodes {
	private static PCDesc descriptor(NMethod code, Address pc, long size) {
		for (Address at = code.scopesPCsBegin(); at.lessThan(code.scopesPCsEnd()); at = at.addOffsetTo(size)) {
			PCDesc next = new PCDesc(at);
			if (next.getRealPC(code).equals(pc))
				return next;
		}
		return null;
	}

	private static void print(Method method, int bci) {
		boolean hasLine = !method.isNative() && method.hasLineNumberTable();
		int line = hasLine ? method.getLineNumberFromBCI(Math.max(bci, 0)) : 0;
		Symbol file = method.getMethodHolder().getSourceFileName();
		System.out.println(method.getMethodHolder().getName().asString().replace('/', '.') + "." + method.getName().asString() +
		                   "\t" + (file == null ? "" : file.asString()) + ":" + Math.max(line, 0));
	}

	public static void main(String[] arguments) throws Exception {
		HotSpotAgent agent = new HotSpotAgent();
		agent.attach(Integer.parseInt(arguments[0]));
		VM vm = VM.getVM();
		long size = vm.getTypeDataBase().lookupType("PcDesc").getSize();
		BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
		for (String line = input.readLine(); line != null; line = input.readLine()) {
			if (!line.startsWith("= "))
				continue;
			System.out.println(line);
			Address pc = vm.getDebugger().parseAddress("0x" + line.substring(2));
			NMethod code = (NMethod) vm.getCodeCache().findBlobUnsafe(pc);
			PCDesc found = code.getMethod() == null ? null : descriptor(code, pc, size);
			if (found == null || found.getScopeDecodeOffset() == 0)
				continue;
			ScopeDesc scope = new ScopeDesc(code, found.getScopeDecodeOffset(), found.getObjDecodeOffset(),
			                                found.getReexecute());
			for (; scope != null; scope = scope.sender())
				print(scope.getMethod(), scope.getBCI());
		}
		agent.detach();
	}
}
