#!/usr/bin/python3
"""Independent float64 numpy reference of DeepSeek V4, written from spec deepseek-v4 (F32, F16, BF16 and I32 tensors only).
   deepseek4_ref.py MODEL.gguf "0,5,6" OUT.npy [--sim]   -> float64 logits [T,V]"""
import sys, struct, numpy as np
def read(path):
    f=open(path,'rb').read(); p=0
    def u(fmt):
        nonlocal p; v=struct.unpack_from('<'+fmt,f,p); p+=struct.calcsize('<'+fmt); return v if len(v)>1 else v[0]
    def s():
        nonlocal p; n=u('Q'); v=f[p:p+n]; p+=n; return v.decode('utf-8','replace')
    F={0:'B',1:'b',2:'H',3:'h',4:'I',5:'i',6:'f',7:'?',10:'Q',11:'q',12:'d'}
    def val(t):
        if t==8: return s()
        if t==9: et,n=u('IQ'); return [val(et) for _ in range(n)]
        return u(F[t])
    assert f[:4]==b'GGUF'; p=4; ver,nt,nk=u('IQQ'); kv={}
    for _ in range(nk): k=s(); t=u('I'); kv[k]=val(t)
    inf=[]
    for _ in range(nt):
        n=s(); nd=u('I'); d=[u('Q') for _ in range(nd)]; ty,off=u('IQ'); inf.append((n,d,ty,off))
    base=(p+31)//32*32; T={}
    for n,d,ty,off in inf:
        dt={0:np.float32,1:np.float16,26:np.int32,30:np.uint16}[ty]; c=int(np.prod(d)); a=np.frombuffer(f,dt,c,base+off).reshape(d[::-1])
        if ty==30: a=(a.astype(np.uint32)<<16).view(np.float32)
        T[n]=a if ty==26 else a.astype(np.float64)
    return kv,T
kv,W=read(sys.argv[1]); ids=list(map(int,sys.argv[2].split(','))); SIM='--sim' in sys.argv
g=lambda k:kv['deepseek4.'+k]
L=g('block_count');D=g('embedding_length');H=g('attention.head_count');d=g('attention.key_length');r=g('rope.dimension_count');G=g('attention.output_group_count');Ro=g('attention.output_lora_rank')
E=g('expert_count');K=g('expert_used_count');Wn=g('attention.sliding_window');IH=g('attention.indexer.head_count');ID=g('attention.indexer.key_length');IK=g('attention.indexer.top_k')
n=g('hyper_connection.count');IT=g('hyper_connection.sinkhorn_iterations');he=g('hyper_connection.epsilon');eps=g('attention.layer_norm_rms_epsilon');RAT=g('attention.compress_ratios');CL=g('swiglu_clamp_exp')[0];SC=g('expert_weights_scale');HL=g('hash_layer_count')
rms=lambda x:x/np.sqrt((x*x).mean(-1,keepdims=True)+eps)
sig=lambda x:1/(1+np.exp(-x)); silu=lambda x:x*sig(x)
def freqs(rho):
    i=np.arange(r//2)
    if rho==0: return g('rope.freq_base')**(-2*i/r)
    b=g('attention.compress_rope_freq_base'); f=b**(-2*i/r); fac=g('rope.scaling.factor'); o=g('rope.scaling.original_context_length')
    c=lambda be:r*np.log(o/(2*np.pi*be))/(2*np.log(b)); lo=max(0,np.floor(c(g('rope.scaling.yarn_beta_fast')))); hi=min(r-1,np.ceil(c(g('rope.scaling.yarn_beta_slow'))))
    t=np.clip((i-lo)/max(.001,hi-lo),0,1); return f*(1-t)+f/fac*t
def rope(x,pos,f,inv=False):
    y=x.copy(); th=pos*f; c,s=np.cos(th),np.sin(th)*(-1 if inv else 1); a=x[...,-r::2] if False else x[...,x.shape[-1]-r::2]; b=x[...,x.shape[-1]-r+1::2]
    y[...,x.shape[-1]-r::2]=a*c-b*s; y[...,x.shape[-1]-r+1::2]=a*s+b*c; return y
E4=np.array(sorted({(m/8*2.0**-6 if e==0 else (1+m/8)*2.0**(e-7)) for e in range(16) for m in range(8) if not(e==15 and m==7)}))
E2=np.array([0,.5,1,1.5,2,3,4,6])
def near(x,tab):
    a=np.abs(x); i=np.clip(np.searchsorted(tab,a),1,len(tab)-1); lo,hi=tab[i-1],tab[i]; m=(lo+hi)/2; up=(a>m)|((a==m)&(i%2==0)); return np.sign(x)*np.where(up,hi,lo)
def blk(x,B,mx,tab,mn):
    y=x.reshape(-1,B); a=np.maximum(np.abs(y).max(1,keepdims=True),mn); s=2.0**np.ceil(np.log2(a/mx)); return (near(np.clip(y/s,-mx,mx),tab)*s).reshape(x.shape)
fp8=lambda x:blk(x,64,448,E4,1e-4) if SIM else x
fp4=lambda x:blk(x,32,6,E2,6*2.0**-126) if SIM else x
f16=lambda x:x.astype(np.float16).astype(np.float64) if SIM else x
def had(x):
    y=x.copy(); m=y.shape[-1]; h=1
    while h<m:
        z=y.reshape(*y.shape[:-1],m//(2*h),2,h); y=np.stack([z[...,0,:]+z[...,1,:],z[...,0,:]-z[...,1,:]],-2).reshape(x.shape); h*=2
    return y*m**-.5
def hc(S,p):
    f=rms(S.reshape(-1)); m=W[p+'_fn.weight']@f; sc=W[p+'_scale.weight']; b=W[p+'_base.weight']
    pre=sig(m[:n]*sc[0]+b[:n])+he; post=2*sig(m[n:2*n]*sc[1]+b[n:2*n]); C=(m[2*n:]*sc[2]+b[2*n:]).reshape(n,n)
    C=np.exp(C-C.max(1,keepdims=True)); C/=C.sum(1,keepdims=True); C+=he; C/=C.sum(0,keepdims=True)+he
    for _ in range(IT-1): C/=C.sum(1,keepdims=True)+he; C/=C.sum(0,keepdims=True)+he
    return pre@S,post,C
class Comp:
    def __init__(s,rho,w): s.rho=rho;c=2 if rho==4 else 1;s.c=c;s.w=w;s.kv=np.zeros((c*rho,c*w));s.sc=np.full((c*rho,c*w),-np.inf)
    def step(s,kvW,gW,ape,norm,a,pos,fr):
        u=kvW@a; gg=gW@a+ape[pos%s.rho]; sl=(s.rho if s.rho==4 else 0)+pos%s.rho; s.kv[sl]=u; s.sc[sl]=gg
        if (pos+1)%s.rho: return None
        w=s.w
        if s.rho==4: sc=np.concatenate([s.sc[:4,:w],s.sc[4:,w:]]); v=np.concatenate([s.kv[:4,:w],s.kv[4:,w:]])
        else: sc,v=s.sc,s.kv
        e=np.exp(sc-sc.max(0)); p=(e*v).sum(0)/e.sum(0)
        if s.rho==4: s.kv[:4]=s.kv[4:]; s.sc[:4]=s.sc[4:]
        return rope(rms(p)*norm,pos+1-s.rho,fr)
st=[dict(raw=[],comp=[],ic=[],A=Comp(q,d) if q else None,I=Comp(q,ID) if q==4 else None) for q in RAT[:L]]
FR=[freqs(q) for q in RAT[:L]]
def attn(l,a,pos):
    b=f'blk.{l}.'; w=lambda k:W[b+k+'.weight']; S=st[l]; fr=FR[l]; rho=RAT[l]
    qr=rms(w('attn_q_a')@a)*w('attn_q_a_norm'); q=rope(rms((w('attn_q_b')@qr).reshape(H,d)),pos,fr)
    k=rope(rms(w('attn_kv')@a)*w('attn_kv_a_norm'),pos,fr); k[:d-r]=fp8(k[:d-r]); S['raw'].append(f16(k)); S['raw']=S['raw'][-Wn:]
    allow=None
    if rho:
        e=S['A'].step(w('attn_compressor_kv'),w('attn_compressor_gate'),w('attn_compressor_ape'),w('attn_compressor_norm'),a,pos,fr)
        if e is not None: e[:d-r]=fp8(e[:d-r]); S['comp'].append(f16(e))
    if rho==4:
        e=S['I'].step(w('indexer_compressor_kv'),w('indexer_compressor_gate'),w('indexer_compressor_ape'),w('indexer_compressor_norm'),a,pos,fr)
        if e is not None: S['ic'].append(fp4(had(e)))
        if len(S['comp'])>IK:
            qi=fp4(had(rope((w('indexer.attn_q_b')@qr).reshape(IH,ID),pos,fr))); wh=(w('indexer.proj')@a)*(ID*IH)**-.5
            s=(wh[:,None]*np.maximum(0,qi@np.array(S['ic']).T)).sum(0); allow=sorted(np.argsort(-s,kind='stable')[:IK])
    rows=np.array(S['raw']+(S['comp'] if allow is None else [S['comp'][i] for i in allow]))
    z=q@rows.T/np.sqrt(d); sk=w('attn_sinks'); M=np.maximum(z.max(1),sk); e=np.exp(z-M[:,None]); o=(e@rows)/(e.sum(1)+np.exp(sk-M))[:,None]
    o=rope(o,pos,fr,True).reshape(G,-1); oa=w('attn_output_a').reshape(G,Ro,-1)
    return w('attn_output_b')@np.einsum('gri,gi->gr',oa,o).reshape(-1)
def moe(l,x,tok):
    b=f'blk.{l}.'; p=np.sqrt(np.log1p(np.exp(W[b+'ffn_gate_inp.weight']@x)))
    sel=W[b+'ffn_gate_tid2eid.weight'][tok] if l<HL else np.argsort(-(p+W[b+'exp_probs_b.bias']),kind='stable')[:K]
    wt=p[sel]/max(p[sel].sum(),2**-14)*SC; y=0
    f=lambda gw,uw,dw,s:dw@(silu(np.minimum(gw@x,CL))*np.clip(uw@x,-CL,CL)*s)
    for e,s in zip(sel,wt): y=y+f(W[b+'ffn_gate_exps.weight'][e],W[b+'ffn_up_exps.weight'][e],W[b+'ffn_down_exps.weight'][e],s)
    return y+f(W[b+'ffn_gate_shexp.weight'],W[b+'ffn_up_shexp.weight'],W[b+'ffn_down_shexp.weight'],1)
out=[]
for pos,t in enumerate(ids):
    S=np.repeat(W['token_embd.weight'][t][None],n,0)
    for l in range(L):
        b=f'blk.{l}.'; x,po,C=hc(S,b+'hc_attn'); y=attn(l,rms(x)*W[b+'attn_norm.weight'],pos); S=po[:,None]*y+C.T@S
        x,po,C=hc(S,b+'hc_ffn'); y=moe(l,rms(x)*W[b+'ffn_norm.weight'],t); S=po[:,None]*y+C.T@S
    f=rms(S.reshape(-1)); h=sig((W['output_hc_fn.weight']@f)*W['output_hc_scale.weight']+W['output_hc_base.weight'])+he
    out.append(W['output.weight']@(rms(h@S)*W['output_norm.weight']))
np.save(sys.argv[3],np.array(out))
