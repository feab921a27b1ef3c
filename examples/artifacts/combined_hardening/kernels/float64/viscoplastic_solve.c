/* viscoplastic_solve: a kernel of one graph, in lanes of material points.
 *
 * Model combined_hardening, cpu/float64/viscoplastic_solve.pt2; made with neml2 3.1.0, torch 2.13.0.
 * Graph: 0 nodes of ATen, SHA-256 f08deb4376604cc29377e514bb0d9da508ce2c9542684f35702127430402dd3d.
 * Kernel: 2616 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

FUNCTION void run_0(const void *const *inputs, void *const *outputs, const void *results, lanes *shared) {
  const lanes *const output_0 = inputs[0];
  const lanes *const output_1 = inputs[1];
  (void)outputs;
  (void)results;
  const lanes output_0_133 = output_0[133];
  const lanes output_0_140 = output_0[140];
  const lanes v243 = output_0_133 + output_0_140;
  shared[0] = v243;
  const lanes output_0_254 = output_0[254];
  const lanes output_0_260 = output_0[260];
  const lanes v279 = output_0_254 - output_0_260;
  shared[1] = v279;
  const lanes output_0_7 = output_0[7];
  const lanes output_0_134 = output_0[134];
  const lanes output_0_141 = output_0[141];
  const lanes v249 = output_0_134 + output_0_141;
  const lanes output_0_26 = output_0[26];
  const lanes output_0_135 = output_0[135];
  const lanes output_0_142 = output_0[142];
  const lanes v255 = output_0_135 + output_0_142;
  const lanes output_0_45 = output_0[45];
  const lanes output_0_136 = output_0[136];
  const lanes output_0_143 = output_0[143];
  const lanes v261 = output_0_136 + output_0_143;
  const lanes output_0_64 = output_0[64];
  const lanes output_0_137 = output_0[137];
  const lanes output_0_144 = output_0[144];
  const lanes v267 = output_0_137 + output_0_144;
  shared[2] = v267;
  const lanes output_0_83 = output_0[83];
  const lanes output_0_138 = output_0[138];
  const lanes output_0_145 = output_0[145];
  const lanes v273 = output_0_138 + output_0_145;
  shared[3] = v273;
  const lanes output_0_102 = output_0[102];
  const lanes output_0_6 = output_0[6];
  const lanes output_0_25 = output_0[25];
  const lanes output_0_44 = output_0[44];
  const lanes output_0_63 = output_0[63];
  const lanes output_0_82 = output_0[82];
  const lanes output_0_101 = output_0[101];
  const lanes output_0_139 = output_0[139];
  const lanes v545 = output_0_139 - output_0_6 * v243 - output_0_25 * v249 - output_0_44 * v255 - output_0_63 * v261 -
                     output_0_82 * v267 - output_0_101 * v273;
  const lanes output_0_120 = output_0[120];
  const lanes v599 = 1.0 / output_0_120;
  shared[4] = v599;
  const lanes v600 = v545 * v599;
  const lanes output_0_121 = output_0[121];
  const lanes output_0_146 = output_0[146];
  const lanes v602 = output_0_146 - output_0_7 * v243 - output_0_26 * v249 - output_0_45 * v255 - output_0_64 * v261 -
                     output_0_83 * v267 - output_0_102 * v273 - output_0_121 * v600;
  const lanes output_0_253 = output_0[253];
  const lanes v654 = output_0_253 * v599;
  const lanes v655 = output_0_121 * v654;
  shared[5] = v655;
  const lanes v656 = output_0_260 - v655;
  shared[6] = v656;
  const lanes v714 = 1.0 / v656;
  shared[7] = v714;
  const lanes v715 = v602 * v714;
  shared[8] = v715;
  const lanes v716 = v279 * v715;
  shared[9] = v716;
  const lanes output_0_272 = output_0[272];
  const lanes v669 = output_0_272 * v599;
  const lanes output_0_279 = output_0[279];
  const lanes v799 = (output_0_279 - output_0_121 * v669) * v714;
  shared[10] = v799;
  const lanes output_0_273 = output_0[273];
  const lanes v801 = output_0_273 - output_0_279 - v279 * v799;
  shared[11] = v801;
  const lanes output_0_8 = output_0[8];
  const lanes output_0_27 = output_0[27];
  const lanes output_0_46 = output_0[46];
  const lanes output_0_65 = output_0[65];
  const lanes output_0_84 = output_0[84];
  const lanes output_0_103 = output_0[103];
  const lanes output_0_122 = output_0[122];
  const lanes output_0_261 = output_0[261];
  const lanes v658 = output_0_261 - output_0_122 * v654;
  shared[12] = v658;
  const lanes output_0_147 = output_0[147];
  const lanes v723 = output_0_147 - output_0_8 * v243 - output_0_27 * v249 - output_0_46 * v255 - output_0_65 * v261 -
                     output_0_84 * v267 - output_0_103 * v273 - output_0_122 * v600 - v658 * v715;
  const lanes v672 = output_0_122 * v669;
  shared[13] = v672;
  const lanes v812 = v658 * v799;
  shared[14] = v812;
  const lanes output_0_280 = output_0[280];
  const lanes v813 = output_0_280 - v672 - v812;
  shared[15] = v813;
  const lanes v880 = 1.0 / v813;
  shared[16] = v880;
  const lanes v881 = v723 * v880;
  shared[17] = v881;
  const lanes v882 = v801 * v881;
  shared[18] = v882;
  const lanes output_0_291 = output_0[291];
  const lanes v678 = output_0_291 * v599;
  const lanes output_0_298 = output_0[298];
  const lanes v824 = (output_0_298 - output_0_121 * v678) * v714;
  shared[19] = v824;
  const lanes output_0_299 = output_0[299];
  const lanes v959 = (output_0_299 - output_0_122 * v678 - v658 * v824) * v880;
  shared[20] = v959;
  const lanes output_0_292 = output_0[292];
  const lanes v961 = output_0_292 - output_0_298 - v279 * v824 - v801 * v959;
  shared[21] = v961;
  const lanes output_0_9 = output_0[9];
  const lanes output_0_28 = output_0[28];
  const lanes output_0_47 = output_0[47];
  const lanes output_0_66 = output_0[66];
  const lanes output_0_85 = output_0[85];
  const lanes output_0_104 = output_0[104];
  const lanes output_0_123 = output_0[123];
  const lanes output_0_262 = output_0[262];
  const lanes v660 = output_0_262 - output_0_123 * v654;
  shared[22] = v660;
  const lanes output_0_281 = output_0[281];
  const lanes v815 = output_0_281 - output_0_123 * v669 - v660 * v799;
  shared[23] = v815;
  const lanes output_0_148 = output_0[148];
  const lanes v889 = output_0_148 - output_0_9 * v243 - output_0_28 * v249 - output_0_47 * v255 - output_0_66 * v261 -
                     output_0_85 * v267 - output_0_104 * v273 - output_0_123 * v600 - v660 * v715 - v815 * v881;
  const lanes v682 = output_0_123 * v678;
  shared[24] = v682;
  const lanes v833 = v660 * v824;
  shared[25] = v833;
  const lanes v972 = v815 * v959;
  shared[26] = v972;
  const lanes output_0_300 = output_0[300];
  const lanes v973 = output_0_300 - v682 - v833 - v972;
  shared[27] = v973;
  const lanes v1021 = 1.0 / v973;
  shared[28] = v1021;
  const lanes v1022 = v889 * v1021;
  shared[29] = v1022;
  const lanes v1023 = v961 * v1022;
  shared[30] = v1023;
  const lanes output_0_310 = output_0[310];
  const lanes v687 = output_0_310 * v599;
  const lanes output_0_317 = output_0[317];
  const lanes v838 = (output_0_317 - output_0_121 * v687) * v714;
  shared[31] = v838;
  const lanes output_0_318 = output_0[318];
  const lanes v982 = (output_0_318 - output_0_122 * v687 - v658 * v838) * v880;
  shared[32] = v982;
  const lanes output_0_319 = output_0[319];
  const lanes v1094 = (output_0_319 - output_0_123 * v687 - v660 * v838 - v815 * v982) * v1021;
  shared[33] = v1094;
  const lanes output_0_311 = output_0[311];
  const lanes v1096 = output_0_311 - output_0_317 - v279 * v838 - v801 * v982 - v961 * v1094;
  shared[34] = v1096;
  const lanes output_0_10 = output_0[10];
  const lanes output_0_29 = output_0[29];
  const lanes output_0_48 = output_0[48];
  const lanes output_0_67 = output_0[67];
  const lanes output_0_86 = output_0[86];
  const lanes output_0_105 = output_0[105];
  const lanes output_0_124 = output_0[124];
  const lanes output_0_263 = output_0[263];
  const lanes v662 = output_0_263 - output_0_124 * v654;
  shared[35] = v662;
  const lanes output_0_282 = output_0[282];
  const lanes v817 = output_0_282 - output_0_124 * v669 - v662 * v799;
  shared[36] = v817;
  const lanes output_0_301 = output_0[301];
  const lanes v975 = output_0_301 - output_0_124 * v678 - v662 * v824 - v817 * v959;
  shared[37] = v975;
  const lanes output_0_149 = output_0[149];
  const lanes v1030 = output_0_149 - output_0_10 * v243 - output_0_29 * v249 - output_0_48 * v255 - output_0_67 * v261 -
                      output_0_86 * v267 - output_0_105 * v273 - output_0_124 * v600 - v662 * v715 - v817 * v881 -
                      v975 * v1022;
  const lanes v692 = output_0_124 * v687;
  shared[38] = v692;
  const lanes v848 = v662 * v838;
  shared[39] = v848;
  const lanes v991 = v817 * v982;
  shared[40] = v991;
  const lanes v1107 = v975 * v1094;
  shared[41] = v1107;
  const lanes output_0_320 = output_0[320];
  const lanes v1108 = output_0_320 - v692 - v848 - v991 - v1107;
  shared[42] = v1108;
  const lanes v1139 = 1.0 / v1108;
  shared[43] = v1139;
  const lanes v1140 = v1030 * v1139;
  shared[44] = v1140;
  const lanes v1141 = v1096 * v1140;
  shared[45] = v1141;
  const lanes output_0_329 = output_0[329];
  const lanes v696 = output_0_329 * v599;
  const lanes output_0_336 = output_0[336];
  const lanes v852 = (output_0_336 - output_0_121 * v696) * v714;
  shared[46] = v852;
  const lanes output_0_337 = output_0[337];
  const lanes v995 = (output_0_337 - output_0_122 * v696 - v658 * v852) * v880;
  shared[47] = v995;
  const lanes output_0_338 = output_0[338];
  const lanes v1115 = (output_0_338 - output_0_123 * v696 - v660 * v852 - v815 * v995) * v1021;
  shared[48] = v1115;
  const lanes output_0_339 = output_0[339];
  const lanes v1206 = (output_0_339 - output_0_124 * v696 - v662 * v852 - v817 * v995 - v975 * v1115) * v1139;
  shared[49] = v1206;
  const lanes output_0_330 = output_0[330];
  const lanes v1208 = output_0_330 - output_0_336 - v279 * v852 - v801 * v995 - v961 * v1115 - v1096 * v1206;
  shared[50] = v1208;
  const lanes output_0_11 = output_0[11];
  const lanes output_0_30 = output_0[30];
  const lanes output_0_49 = output_0[49];
  const lanes output_0_68 = output_0[68];
  const lanes output_0_87 = output_0[87];
  const lanes output_0_106 = output_0[106];
  const lanes output_0_125 = output_0[125];
  const lanes output_0_264 = output_0[264];
  const lanes v664 = output_0_264 - output_0_125 * v654;
  shared[51] = v664;
  const lanes output_0_283 = output_0[283];
  const lanes v819 = output_0_283 - output_0_125 * v669 - v664 * v799;
  shared[52] = v819;
  const lanes output_0_302 = output_0[302];
  const lanes v977 = output_0_302 - output_0_125 * v678 - v664 * v824 - v819 * v959;
  shared[53] = v977;
  const lanes output_0_321 = output_0[321];
  const lanes v1110 = output_0_321 - output_0_125 * v687 - v664 * v838 - v819 * v982 - v977 * v1094;
  shared[54] = v1110;
  const lanes output_0_150 = output_0[150];
  const lanes v1148 = output_0_150 - output_0_11 * v243 - output_0_30 * v249 - output_0_49 * v255 - output_0_68 * v261 -
                      output_0_87 * v267 - output_0_106 * v273 - output_0_125 * v600 - v664 * v715 - v819 * v881 -
                      v977 * v1022 - v1110 * v1140;
  const lanes v702 = output_0_125 * v696;
  shared[55] = v702;
  const lanes v863 = v664 * v852;
  shared[56] = v863;
  const lanes v1005 = v819 * v995;
  shared[57] = v1005;
  const lanes v1124 = v977 * v1115;
  shared[58] = v1124;
  const lanes v1219 = v1110 * v1206;
  shared[59] = v1219;
  const lanes output_0_340 = output_0[340];
  const lanes v1220 = output_0_340 - v702 - v863 - v1005 - v1124 - v1219;
  shared[60] = v1220;
  const lanes v1236 = 1.0 / v1220;
  shared[61] = v1236;
  const lanes v1237 = v1148 * v1236;
  shared[62] = v1237;
  const lanes v1238 = v1208 * v1237;
  shared[63] = v1238;
  const lanes output_0_348 = output_0[348];
  const lanes v705 = output_0_348 * v599;
  const lanes output_0_355 = output_0[355];
  const lanes v866 = (output_0_355 - output_0_121 * v705) * v714;
  shared[64] = v866;
  const lanes output_0_356 = output_0[356];
  const lanes v1008 = (output_0_356 - output_0_122 * v705 - v658 * v866) * v880;
  shared[65] = v1008;
  const lanes output_0_357 = output_0[357];
  const lanes v1127 = (output_0_357 - output_0_123 * v705 - v660 * v866 - v815 * v1008) * v1021;
  shared[66] = v1127;
  const lanes output_0_358 = output_0[358];
  const lanes v1225 = (output_0_358 - output_0_124 * v705 - v662 * v866 - v817 * v1008 - v975 * v1127) * v1139;
  shared[67] = v1225;
  const lanes output_0_359 = output_0[359];
  const lanes v1233 = output_0_359 - output_0_125 * v705 - v664 * v866 - v819 * v1008 - v977 * v1127 - v1110 * v1225;
  const lanes v1297 = v1233 * v1236;
  shared[68] = v1297;
  const lanes output_0_349 = output_0[349];
  const lanes v1299 =
      output_0_349 - output_0_355 - v279 * v866 - v801 * v1008 - v961 * v1127 - v1096 * v1225 - v1208 * v1297;
  shared[69] = v1299;
  const lanes output_0_12 = output_0[12];
  const lanes output_0_31 = output_0[31];
  const lanes output_0_50 = output_0[50];
  const lanes output_0_69 = output_0[69];
  const lanes output_0_88 = output_0[88];
  const lanes output_0_107 = output_0[107];
  const lanes output_0_126 = output_0[126];
  const lanes output_0_265 = output_0[265];
  const lanes v666 = output_0_265 - output_0_126 * v654;
  shared[70] = v666;
  const lanes output_0_284 = output_0[284];
  const lanes v821 = output_0_284 - output_0_126 * v669 - v666 * v799;
  shared[71] = v821;
  const lanes output_0_303 = output_0[303];
  const lanes v979 = output_0_303 - output_0_126 * v678 - v666 * v824 - v821 * v959;
  shared[72] = v979;
  const lanes output_0_322 = output_0[322];
  const lanes v1112 = output_0_322 - output_0_126 * v687 - v666 * v838 - v821 * v982 - v979 * v1094;
  shared[73] = v1112;
  const lanes output_0_341 = output_0[341];
  const lanes v1222 = output_0_341 - output_0_126 * v696 - v666 * v852 - v821 * v995 - v979 * v1115 - v1112 * v1206;
  shared[74] = v1222;
  const lanes output_0_151 = output_0[151];
  const lanes v1245 = output_0_151 - output_0_12 * v243 - output_0_31 * v249 - output_0_50 * v255 - output_0_69 * v261 -
                      output_0_88 * v267 - output_0_107 * v273 - output_0_126 * v600 - v666 * v715 - v821 * v881 -
                      v979 * v1022 - v1112 * v1140 - v1222 * v1237;
  const lanes v712 = output_0_126 * v705;
  shared[75] = v712;
  const lanes v878 = v666 * v866;
  shared[76] = v878;
  const lanes v1019 = v821 * v1008;
  shared[77] = v1019;
  const lanes v1137 = v979 * v1127;
  shared[78] = v1137;
  const lanes v1234 = v1112 * v1225;
  shared[79] = v1234;
  const lanes v1310 = v1222 * v1297;
  shared[80] = v1310;
  const lanes output_0_360 = output_0[360];
  const lanes v1311 = output_0_360 - v712 - v878 - v1019 - v1137 - v1234 - v1310;
  shared[81] = v1311;
  const lanes v1314 = 1.0 / v1311;
  shared[82] = v1314;
  const lanes v1315 = v1245 * v1314;
  shared[83] = v1315;
  const lanes v1316 = v1299 * v1315;
  shared[84] = v1316;
  const lanes v1317 = v243 - v716 - v882 - v1023 - v1141 - v1238 - v1316;
  shared[85] = v1317;
  const lanes v1375 = 1.0 / v1317;
  shared[86] = v1375;
  const lanes output_1_0 = output_1[0];
  const lanes output_1_1 = output_1[1];
  const lanes output_1_2 = output_1[2];
  const lanes output_1_3 = output_1[3];
  const lanes output_1_4 = output_1[4];
  const lanes output_1_5 = output_1[5];
  const lanes output_1_6 = output_1[6];
  const lanes output_1_13 = output_1[13];
  const lanes v668 = output_1_13 - output_1_6 * v654;
  shared[87] = v668;
  const lanes output_1_14 = output_1[14];
  const lanes v823 = output_1_14 - output_1_6 * v669 - v668 * v799;
  shared[88] = v823;
  const lanes output_1_15 = output_1[15];
  const lanes v981 = output_1_15 - output_1_6 * v678 - v668 * v824 - v823 * v959;
  shared[89] = v981;
  const lanes output_1_16 = output_1[16];
  const lanes v1114 = output_1_16 - output_1_6 * v687 - v668 * v838 - v823 * v982 - v981 * v1094;
  shared[90] = v1114;
  const lanes output_1_17 = output_1[17];
  const lanes v1224 = output_1_17 - output_1_6 * v696 - v668 * v852 - v823 * v995 - v981 * v1115 - v1114 * v1206;
  shared[91] = v1224;
  const lanes output_1_18 = output_1[18];
  const lanes v1313 =
      output_1_18 - output_1_6 * v705 - v668 * v866 - v823 * v1008 - v981 * v1127 - v1114 * v1225 - v1224 * v1297;
  shared[92] = v1313;
  const lanes output_1_7 = output_1[7];
  const lanes v1329 = output_1_7 - v243 * output_1_0 - v249 * output_1_1 - v255 * output_1_2 - v261 * output_1_3 -
                      v267 * output_1_4 - v273 * output_1_5 - output_1_6 * v600 - v668 * v715 - v823 * v881 -
                      v981 * v1022 - v1114 * v1140 - v1224 * v1237 - v1313 * v1315;
  shared[93] = v1329;
  const lanes output_0_255 = output_0[255];
  const lanes v280 = output_0_255 - output_0_261;
  shared[94] = v280;
  const lanes output_0_274 = output_0[274];
  const lanes v803 = output_0_274 - output_0_280 - v280 * v799;
  shared[95] = v803;
  const lanes output_0_293 = output_0[293];
  const lanes v963 = output_0_293 - output_0_299 - v280 * v824 - v803 * v959;
  shared[96] = v963;
  const lanes output_0_312 = output_0[312];
  const lanes v1098 = output_0_312 - output_0_318 - v280 * v838 - v803 * v982 - v963 * v1094;
  shared[97] = v1098;
  const lanes output_0_331 = output_0[331];
  const lanes v1210 = output_0_331 - output_0_337 - v280 * v852 - v803 * v995 - v963 * v1115 - v1098 * v1206;
  shared[98] = v1210;
  const lanes output_0_350 = output_0[350];
  const lanes v1301 =
      output_0_350 - output_0_356 - v280 * v866 - v803 * v1008 - v963 * v1127 - v1098 * v1225 - v1210 * v1297;
  shared[99] = v1301;
  const lanes v1319 = v249 - v280 * v715 - v803 * v881 - v963 * v1022 - v1098 * v1140 - v1210 * v1237 - v1301 * v1315;
  shared[100] = v1319;
  const lanes output_0_153 = output_0[153];
  const lanes output_0_160 = output_0[160];
  const lanes v250 = output_0_153 + output_0_160;
  shared[101] = v250;
  const lanes output_0_152 = output_0[152];
  const lanes output_0_159 = output_0[159];
  const lanes v244 = output_0_152 + output_0_159;
  const lanes output_0_154 = output_0[154];
  const lanes output_0_161 = output_0[161];
  const lanes v256 = output_0_154 + output_0_161;
  const lanes output_0_155 = output_0[155];
  const lanes output_0_162 = output_0[162];
  const lanes v262 = output_0_155 + output_0_162;
  const lanes output_0_156 = output_0[156];
  const lanes output_0_163 = output_0[163];
  const lanes v268 = output_0_156 + output_0_163;
  shared[102] = v268;
  const lanes output_0_157 = output_0[157];
  const lanes output_0_164 = output_0[164];
  const lanes v274 = output_0_157 + output_0_164;
  shared[103] = v274;
  const lanes output_0_158 = output_0[158];
  const lanes v554 = output_0_158 - output_0_6 * v244 - output_0_25 * v250 - output_0_44 * v256 - output_0_63 * v262 -
                     output_0_82 * v268 - output_0_101 * v274;
  const lanes v609 = v554 * v599;
  const lanes output_0_165 = output_0[165];
  const lanes v611 = output_0_165 - output_0_7 * v244 - output_0_26 * v250 - output_0_45 * v256 - output_0_64 * v262 -
                     output_0_83 * v268 - output_0_102 * v274 - output_0_121 * v609;
  const lanes v729 = v611 * v714;
  shared[104] = v729;
  const lanes v731 = v280 * v729;
  shared[105] = v731;
  const lanes output_0_166 = output_0[166];
  const lanes v737 = output_0_166 - output_0_8 * v244 - output_0_27 * v250 - output_0_46 * v256 - output_0_65 * v262 -
                     output_0_84 * v268 - output_0_103 * v274 - output_0_122 * v609 - v658 * v729;
  const lanes v894 = v737 * v880;
  shared[106] = v894;
  const lanes v896 = v803 * v894;
  shared[107] = v896;
  const lanes output_0_167 = output_0[167];
  const lanes v902 = output_0_167 - output_0_9 * v244 - output_0_28 * v250 - output_0_47 * v256 - output_0_66 * v262 -
                     output_0_85 * v268 - output_0_104 * v274 - output_0_123 * v609 - v660 * v729 - v815 * v894;
  const lanes v1034 = v902 * v1021;
  shared[108] = v1034;
  const lanes v1036 = v963 * v1034;
  shared[109] = v1036;
  const lanes output_0_168 = output_0[168];
  const lanes v1042 = output_0_168 - output_0_10 * v244 - output_0_29 * v250 - output_0_48 * v256 - output_0_67 * v262 -
                      output_0_86 * v268 - output_0_105 * v274 - output_0_124 * v609 - v662 * v729 - v817 * v894 -
                      v975 * v1034;
  const lanes v1151 = v1042 * v1139;
  shared[110] = v1151;
  const lanes v1153 = v1098 * v1151;
  shared[111] = v1153;
  const lanes output_0_169 = output_0[169];
  const lanes v1159 = output_0_169 - output_0_11 * v244 - output_0_30 * v250 - output_0_49 * v256 - output_0_68 * v262 -
                      output_0_87 * v268 - output_0_106 * v274 - output_0_125 * v609 - v664 * v729 - v819 * v894 -
                      v977 * v1034 - v1110 * v1151;
  const lanes v1247 = v1159 * v1236;
  shared[112] = v1247;
  const lanes v1249 = v1210 * v1247;
  shared[113] = v1249;
  const lanes output_0_170 = output_0[170];
  const lanes v1255 = output_0_170 - output_0_12 * v244 - output_0_31 * v250 - output_0_50 * v256 - output_0_69 * v262 -
                      output_0_88 * v268 - output_0_107 * v274 - output_0_126 * v609 - v666 * v729 - v821 * v894 -
                      v979 * v1034 - v1112 * v1151 - v1222 * v1247;
  const lanes v1330 = v1255 * v1314;
  shared[114] = v1330;
  const lanes v1333 = v1301 * v1330;
  shared[115] = v1333;
  const lanes v1332 = v244 - v279 * v729 - v801 * v894 - v961 * v1034 - v1096 * v1151 - v1208 * v1247 - v1299 * v1330;
  const lanes v1376 = v1332 * v1375;
  shared[116] = v1376;
  const lanes v1377 = v1319 * v1376;
  shared[117] = v1377;
  const lanes v1378 = v250 - v731 - v896 - v1036 - v1153 - v1249 - v1333 - v1377;
  shared[118] = v1378;
  const lanes v1421 = 1.0 / v1378;
  shared[119] = v1421;
  const lanes output_1_8 = output_1[8];
  const lanes v1388 = output_1_8 - v244 * output_1_0 - v250 * output_1_1 - v256 * output_1_2 - v262 * output_1_3 -
                      v268 * output_1_4 - v274 * output_1_5 - output_1_6 * v609 - v668 * v729 - v823 * v894 -
                      v981 * v1034 - v1114 * v1151 - v1224 * v1247 - v1313 * v1330 - v1329 * v1376;
  shared[120] = v1388;
  const lanes output_0_256 = output_0[256];
  const lanes v281 = output_0_256 - output_0_262;
  shared[121] = v281;
  const lanes output_0_275 = output_0[275];
  const lanes v805 = output_0_275 - output_0_281 - v281 * v799;
  shared[122] = v805;
  const lanes output_0_294 = output_0[294];
  const lanes v965 = output_0_294 - output_0_300 - v281 * v824 - v805 * v959;
  shared[123] = v965;
  const lanes output_0_313 = output_0[313];
  const lanes v1100 = output_0_313 - output_0_319 - v281 * v838 - v805 * v982 - v965 * v1094;
  shared[124] = v1100;
  const lanes output_0_332 = output_0[332];
  const lanes v1212 = output_0_332 - output_0_338 - v281 * v852 - v805 * v995 - v965 * v1115 - v1100 * v1206;
  shared[125] = v1212;
  const lanes output_0_351 = output_0[351];
  const lanes v1303 =
      output_0_351 - output_0_357 - v281 * v866 - v805 * v1008 - v965 * v1127 - v1100 * v1225 - v1212 * v1297;
  shared[126] = v1303;
  const lanes v1321 = v255 - v281 * v715 - v805 * v881 - v965 * v1022 - v1100 * v1140 - v1212 * v1237 - v1303 * v1315;
  shared[127] = v1321;
  const lanes v1380 =
      v256 - v281 * v729 - v805 * v894 - v965 * v1034 - v1100 * v1151 - v1212 * v1247 - v1303 * v1330 - v1321 * v1376;
  shared[128] = v1380;
  const lanes output_0_173 = output_0[173];
  const lanes output_0_180 = output_0[180];
  const lanes v257 = output_0_173 + output_0_180;
  shared[129] = v257;
  const lanes output_0_171 = output_0[171];
  const lanes output_0_178 = output_0[178];
  const lanes v245 = output_0_171 + output_0_178;
  const lanes output_0_172 = output_0[172];
  const lanes output_0_179 = output_0[179];
  const lanes v251 = output_0_172 + output_0_179;
  const lanes output_0_174 = output_0[174];
  const lanes output_0_181 = output_0[181];
  const lanes v263 = output_0_174 + output_0_181;
  const lanes output_0_175 = output_0[175];
  const lanes output_0_182 = output_0[182];
  const lanes v269 = output_0_175 + output_0_182;
  shared[130] = v269;
  const lanes output_0_176 = output_0[176];
  const lanes output_0_183 = output_0[183];
  const lanes v275 = output_0_176 + output_0_183;
  shared[131] = v275;
  const lanes output_0_177 = output_0[177];
  const lanes v563 = output_0_177 - output_0_6 * v245 - output_0_25 * v251 - output_0_44 * v257 - output_0_63 * v263 -
                     output_0_82 * v269 - output_0_101 * v275;
  const lanes v618 = v563 * v599;
  const lanes output_0_184 = output_0[184];
  const lanes v620 = output_0_184 - output_0_7 * v245 - output_0_26 * v251 - output_0_45 * v257 - output_0_64 * v263 -
                     output_0_83 * v269 - output_0_102 * v275 - output_0_121 * v618;
  const lanes v743 = v620 * v714;
  shared[132] = v743;
  const lanes v746 = v281 * v743;
  shared[133] = v746;
  const lanes output_0_185 = output_0[185];
  const lanes v751 = output_0_185 - output_0_8 * v245 - output_0_27 * v251 - output_0_46 * v257 - output_0_65 * v263 -
                     output_0_84 * v269 - output_0_103 * v275 - output_0_122 * v618 - v658 * v743;
  const lanes v907 = v751 * v880;
  shared[134] = v907;
  const lanes v910 = v805 * v907;
  shared[135] = v910;
  const lanes output_0_186 = output_0[186];
  const lanes v915 = output_0_186 - output_0_9 * v245 - output_0_28 * v251 - output_0_47 * v257 - output_0_66 * v263 -
                     output_0_85 * v269 - output_0_104 * v275 - output_0_123 * v618 - v660 * v743 - v815 * v907;
  const lanes v1046 = v915 * v1021;
  shared[136] = v1046;
  const lanes v1049 = v965 * v1046;
  shared[137] = v1049;
  const lanes output_0_187 = output_0[187];
  const lanes v1054 = output_0_187 - output_0_10 * v245 - output_0_29 * v251 - output_0_48 * v257 - output_0_67 * v263 -
                      output_0_86 * v269 - output_0_105 * v275 - output_0_124 * v618 - v662 * v743 - v817 * v907 -
                      v975 * v1046;
  const lanes v1162 = v1054 * v1139;
  shared[138] = v1162;
  const lanes v1165 = v1100 * v1162;
  shared[139] = v1165;
  const lanes output_0_188 = output_0[188];
  const lanes v1170 = output_0_188 - output_0_11 * v245 - output_0_30 * v251 - output_0_49 * v257 - output_0_68 * v263 -
                      output_0_87 * v269 - output_0_106 * v275 - output_0_125 * v618 - v664 * v743 - v819 * v907 -
                      v977 * v1046 - v1110 * v1162;
  const lanes v1257 = v1170 * v1236;
  shared[140] = v1257;
  const lanes v1260 = v1212 * v1257;
  shared[141] = v1260;
  const lanes output_0_189 = output_0[189];
  const lanes v1265 = output_0_189 - output_0_12 * v245 - output_0_31 * v251 - output_0_50 * v257 - output_0_69 * v263 -
                      output_0_88 * v269 - output_0_107 * v275 - output_0_126 * v618 - v666 * v743 - v821 * v907 -
                      v979 * v1046 - v1112 * v1162 - v1222 * v1257;
  const lanes v1339 = v1265 * v1314;
  shared[142] = v1339;
  const lanes v1343 = v1303 * v1339;
  shared[143] = v1343;
  const lanes v1341 = v245 - v279 * v743 - v801 * v907 - v961 * v1046 - v1096 * v1162 - v1208 * v1257 - v1299 * v1339;
  const lanes v1389 = v1341 * v1375;
  shared[144] = v1389;
  const lanes v1392 = v1321 * v1389;
  shared[145] = v1392;
  const lanes v1391 =
      v251 - v280 * v743 - v803 * v907 - v963 * v1046 - v1098 * v1162 - v1210 * v1257 - v1301 * v1339 - v1319 * v1389;
  const lanes v1422 = v1391 * v1421;
  shared[146] = v1422;
  const lanes v1423 = v1380 * v1422;
  shared[147] = v1423;
  const lanes v1424 = v257 - v746 - v910 - v1049 - v1165 - v1260 - v1343 - v1392 - v1423;
  shared[148] = v1424;
  const lanes v1454 = 1.0 / v1424;
  shared[149] = v1454;
  const lanes output_1_9 = output_1[9];
  const lanes v1432 = output_1_9 - v245 * output_1_0 - v251 * output_1_1 - v257 * output_1_2 - v263 * output_1_3 -
                      v269 * output_1_4 - v275 * output_1_5 - output_1_6 * v618 - v668 * v743 - v823 * v907 -
                      v981 * v1046 - v1114 * v1162 - v1224 * v1257 - v1313 * v1339 - v1329 * v1389 - v1388 * v1422;
  shared[150] = v1432;
  const lanes output_0_257 = output_0[257];
  const lanes v282 = output_0_257 - output_0_263;
  shared[151] = v282;
  const lanes output_0_276 = output_0[276];
  const lanes v807 = output_0_276 - output_0_282 - v282 * v799;
  shared[152] = v807;
  const lanes output_0_295 = output_0[295];
  const lanes v967 = output_0_295 - output_0_301 - v282 * v824 - v807 * v959;
  shared[153] = v967;
  const lanes output_0_314 = output_0[314];
  const lanes v1102 = output_0_314 - output_0_320 - v282 * v838 - v807 * v982 - v967 * v1094;
  shared[154] = v1102;
  const lanes output_0_333 = output_0[333];
  const lanes v1214 = output_0_333 - output_0_339 - v282 * v852 - v807 * v995 - v967 * v1115 - v1102 * v1206;
  shared[155] = v1214;
  const lanes output_0_352 = output_0[352];
  const lanes v1305 =
      output_0_352 - output_0_358 - v282 * v866 - v807 * v1008 - v967 * v1127 - v1102 * v1225 - v1214 * v1297;
  shared[156] = v1305;
  const lanes v1323 = v261 - v282 * v715 - v807 * v881 - v967 * v1022 - v1102 * v1140 - v1214 * v1237 - v1305 * v1315;
  shared[157] = v1323;
  const lanes v1382 =
      v262 - v282 * v729 - v807 * v894 - v967 * v1034 - v1102 * v1151 - v1214 * v1247 - v1305 * v1330 - v1323 * v1376;
  shared[158] = v1382;
  const lanes v1426 = v263 - v282 * v743 - v807 * v907 - v967 * v1046 - v1102 * v1162 - v1214 * v1257 - v1305 * v1339 -
                      v1323 * v1389 - v1382 * v1422;
  shared[159] = v1426;
  const lanes output_0_193 = output_0[193];
  const lanes output_0_200 = output_0[200];
  const lanes v264 = output_0_193 + output_0_200;
  shared[160] = v264;
  const lanes output_0_190 = output_0[190];
  const lanes output_0_197 = output_0[197];
  const lanes v246 = output_0_190 + output_0_197;
  const lanes output_0_191 = output_0[191];
  const lanes output_0_198 = output_0[198];
  const lanes v252 = output_0_191 + output_0_198;
  const lanes output_0_192 = output_0[192];
  const lanes output_0_199 = output_0[199];
  const lanes v258 = output_0_192 + output_0_199;
  const lanes output_0_194 = output_0[194];
  const lanes output_0_201 = output_0[201];
  const lanes v270 = output_0_194 + output_0_201;
  shared[161] = v270;
  const lanes output_0_195 = output_0[195];
  const lanes output_0_202 = output_0[202];
  const lanes v276 = output_0_195 + output_0_202;
  shared[162] = v276;
  const lanes output_0_196 = output_0[196];
  const lanes v572 = output_0_196 - output_0_6 * v246 - output_0_25 * v252 - output_0_44 * v258 - output_0_63 * v264 -
                     output_0_82 * v270 - output_0_101 * v276;
  const lanes v627 = v572 * v599;
  const lanes output_0_203 = output_0[203];
  const lanes v629 = output_0_203 - output_0_7 * v246 - output_0_26 * v252 - output_0_45 * v258 - output_0_64 * v264 -
                     output_0_83 * v270 - output_0_102 * v276 - output_0_121 * v627;
  const lanes v757 = v629 * v714;
  shared[163] = v757;
  const lanes v761 = v282 * v757;
  shared[164] = v761;
  const lanes output_0_204 = output_0[204];
  const lanes v765 = output_0_204 - output_0_8 * v246 - output_0_27 * v252 - output_0_46 * v258 - output_0_65 * v264 -
                     output_0_84 * v270 - output_0_103 * v276 - output_0_122 * v627 - v658 * v757;
  const lanes v920 = v765 * v880;
  shared[165] = v920;
  const lanes v924 = v807 * v920;
  shared[166] = v924;
  const lanes output_0_205 = output_0[205];
  const lanes v928 = output_0_205 - output_0_9 * v246 - output_0_28 * v252 - output_0_47 * v258 - output_0_66 * v264 -
                     output_0_85 * v270 - output_0_104 * v276 - output_0_123 * v627 - v660 * v757 - v815 * v920;
  const lanes v1058 = v928 * v1021;
  shared[167] = v1058;
  const lanes v1062 = v967 * v1058;
  shared[168] = v1062;
  const lanes output_0_206 = output_0[206];
  const lanes v1066 = output_0_206 - output_0_10 * v246 - output_0_29 * v252 - output_0_48 * v258 - output_0_67 * v264 -
                      output_0_86 * v270 - output_0_105 * v276 - output_0_124 * v627 - v662 * v757 - v817 * v920 -
                      v975 * v1058;
  const lanes v1173 = v1066 * v1139;
  shared[169] = v1173;
  const lanes v1177 = v1102 * v1173;
  shared[170] = v1177;
  const lanes output_0_207 = output_0[207];
  const lanes v1181 = output_0_207 - output_0_11 * v246 - output_0_30 * v252 - output_0_49 * v258 - output_0_68 * v264 -
                      output_0_87 * v270 - output_0_106 * v276 - output_0_125 * v627 - v664 * v757 - v819 * v920 -
                      v977 * v1058 - v1110 * v1173;
  const lanes v1267 = v1181 * v1236;
  shared[171] = v1267;
  const lanes v1271 = v1214 * v1267;
  shared[172] = v1271;
  const lanes output_0_208 = output_0[208];
  const lanes v1275 = output_0_208 - output_0_12 * v246 - output_0_31 * v252 - output_0_50 * v258 - output_0_69 * v264 -
                      output_0_88 * v270 - output_0_107 * v276 - output_0_126 * v627 - v666 * v757 - v821 * v920 -
                      v979 * v1058 - v1112 * v1173 - v1222 * v1267;
  const lanes v1348 = v1275 * v1314;
  shared[173] = v1348;
  const lanes v1353 = v1305 * v1348;
  shared[174] = v1353;
  const lanes v1350 = v246 - v279 * v757 - v801 * v920 - v961 * v1058 - v1096 * v1173 - v1208 * v1267 - v1299 * v1348;
  const lanes v1397 = v1350 * v1375;
  shared[175] = v1397;
  const lanes v1401 = v1323 * v1397;
  shared[176] = v1401;
  const lanes v1399 =
      v252 - v280 * v757 - v803 * v920 - v963 * v1058 - v1098 * v1173 - v1210 * v1267 - v1301 * v1348 - v1319 * v1397;
  const lanes v1433 = v1399 * v1421;
  shared[177] = v1433;
  const lanes v1436 = v1382 * v1433;
  shared[178] = v1436;
  const lanes v1435 = v258 - v281 * v757 - v805 * v920 - v965 * v1058 - v1100 * v1173 - v1212 * v1267 - v1303 * v1348 -
                      v1321 * v1397 - v1380 * v1433;
  const lanes v1455 = v1435 * v1454;
  shared[179] = v1455;
  const lanes v1456 = v1426 * v1455;
  shared[180] = v1456;
  const lanes v1457 = v264 - v761 - v924 - v1062 - v1177 - v1271 - v1353 - v1401 - v1436 - v1456;
  shared[181] = v1457;
  shared[182] = 1.0 / v1457;
  const lanes output_1_10 = output_1[10];
  shared[183] = output_1_10 - v246 * output_1_0 - v252 * output_1_1 - v258 * output_1_2 - v264 * output_1_3 -
                v270 * output_1_4 - v276 * output_1_5 - output_1_6 * v627 - v668 * v757 - v823 * v920 - v981 * v1058 -
                v1114 * v1173 - v1224 * v1267 - v1313 * v1348 - v1329 * v1397 - v1388 * v1433 - v1432 * v1455;
  const lanes output_0_258 = output_0[258];
  const lanes v283 = output_0_258 - output_0_264;
  shared[184] = v283;
  shared[185] = v283 * v757;
  const lanes output_0_277 = output_0[277];
  const lanes v809 = output_0_277 - output_0_283 - v283 * v799;
  shared[186] = v809;
  shared[187] = v809 * v920;
  const lanes output_0_296 = output_0[296];
  shared[188] = output_0_296 - output_0_302 - v283 * v824 - v809 * v959;
}

FUNCTION void run_1(const void *const *inputs, void *const *outputs, const void *results, lanes *shared) {
  const lanes *const output_0 = inputs[0];
  const lanes *const output_1 = inputs[1];
  lanes *const step = outputs[0];
  lanes *const trusted = outputs[1];
  (void)results;
  const lanes v969 = shared[188];
  const lanes v1058 = shared[167];
  const lanes v283 = shared[184];
  const lanes v838 = shared[31];
  const lanes v809 = shared[186];
  const lanes v982 = shared[32];
  const lanes v1094 = shared[33];
  const lanes output_0_315 = output_0[315];
  const lanes output_0_321 = output_0[321];
  const lanes v1104 = output_0_315 - output_0_321 - v283 * v838 - v809 * v982 - v969 * v1094;
  const lanes v1173 = shared[169];
  const lanes v852 = shared[46];
  const lanes v995 = shared[47];
  const lanes v1115 = shared[48];
  const lanes v1206 = shared[49];
  const lanes output_0_334 = output_0[334];
  const lanes output_0_340 = output_0[340];
  const lanes v1216 = output_0_334 - output_0_340 - v283 * v852 - v809 * v995 - v969 * v1115 - v1104 * v1206;
  const lanes v1267 = shared[171];
  const lanes v866 = shared[64];
  const lanes v1008 = shared[65];
  const lanes v1127 = shared[66];
  const lanes v1225 = shared[67];
  const lanes v1297 = shared[68];
  const lanes output_0_353 = output_0[353];
  const lanes output_0_359 = output_0[359];
  const lanes v1307 =
      output_0_353 - output_0_359 - v283 * v866 - v809 * v1008 - v969 * v1127 - v1104 * v1225 - v1216 * v1297;
  const lanes v1348 = shared[173];
  const lanes v715 = shared[8];
  const lanes v881 = shared[17];
  const lanes v1022 = shared[29];
  const lanes v1140 = shared[44];
  const lanes v1237 = shared[62];
  const lanes v1315 = shared[83];
  const lanes v267 = shared[2];
  const lanes v1325 = v267 - v283 * v715 - v809 * v881 - v969 * v1022 - v1104 * v1140 - v1216 * v1237 - v1307 * v1315;
  const lanes v1397 = shared[175];
  const lanes v729 = shared[104];
  const lanes v894 = shared[106];
  const lanes v1034 = shared[108];
  const lanes v1151 = shared[110];
  const lanes v1247 = shared[112];
  const lanes v1330 = shared[114];
  const lanes v1376 = shared[116];
  const lanes v268 = shared[102];
  const lanes v1384 =
      v268 - v283 * v729 - v809 * v894 - v969 * v1034 - v1104 * v1151 - v1216 * v1247 - v1307 * v1330 - v1325 * v1376;
  const lanes v1433 = shared[177];
  const lanes v743 = shared[132];
  const lanes v907 = shared[134];
  const lanes v1046 = shared[136];
  const lanes v1162 = shared[138];
  const lanes v1257 = shared[140];
  const lanes v1339 = shared[142];
  const lanes v1389 = shared[144];
  const lanes v1422 = shared[146];
  const lanes v269 = shared[130];
  const lanes v1428 = v269 - v283 * v743 - v809 * v907 - v969 * v1046 - v1104 * v1162 - v1216 * v1257 - v1307 * v1339 -
                      v1325 * v1389 - v1384 * v1422;
  const lanes v1455 = shared[179];
  const lanes v270 = shared[161];
  const lanes v762 = shared[185];
  const lanes v925 = shared[187];
  const lanes v1459 = v270 - v762 - v925 - v969 * v1058 - v1104 * v1173 - v1216 * v1267 - v1307 * v1348 -
                      v1325 * v1397 - v1384 * v1433 - v1428 * v1455;
  const lanes output_0_213 = output_0[213];
  const lanes output_0_220 = output_0[220];
  const lanes v271 = output_0_213 + output_0_220;
  const lanes output_0_209 = output_0[209];
  const lanes output_0_216 = output_0[216];
  const lanes v247 = output_0_209 + output_0_216;
  const lanes output_0_7 = output_0[7];
  const lanes output_0_210 = output_0[210];
  const lanes output_0_217 = output_0[217];
  const lanes v253 = output_0_210 + output_0_217;
  const lanes output_0_26 = output_0[26];
  const lanes output_0_211 = output_0[211];
  const lanes output_0_218 = output_0[218];
  const lanes v259 = output_0_211 + output_0_218;
  const lanes output_0_45 = output_0[45];
  const lanes output_0_212 = output_0[212];
  const lanes output_0_219 = output_0[219];
  const lanes v265 = output_0_212 + output_0_219;
  const lanes output_0_64 = output_0[64];
  const lanes output_0_83 = output_0[83];
  const lanes output_0_214 = output_0[214];
  const lanes output_0_221 = output_0[221];
  const lanes v277 = output_0_214 + output_0_221;
  const lanes output_0_102 = output_0[102];
  const lanes output_0_6 = output_0[6];
  const lanes output_0_25 = output_0[25];
  const lanes output_0_44 = output_0[44];
  const lanes output_0_63 = output_0[63];
  const lanes output_0_82 = output_0[82];
  const lanes output_0_101 = output_0[101];
  const lanes output_0_215 = output_0[215];
  const lanes v581 = output_0_215 - output_0_6 * v247 - output_0_25 * v253 - output_0_44 * v259 - output_0_63 * v265 -
                     output_0_82 * v271 - output_0_101 * v277;
  const lanes v599 = shared[4];
  const lanes v636 = v581 * v599;
  const lanes output_0_121 = output_0[121];
  const lanes output_0_222 = output_0[222];
  const lanes v638 = output_0_222 - output_0_7 * v247 - output_0_26 * v253 - output_0_45 * v259 - output_0_64 * v265 -
                     output_0_83 * v271 - output_0_102 * v277 - output_0_121 * v636;
  const lanes v714 = shared[7];
  const lanes v771 = v638 * v714;
  const lanes v776 = v283 * v771;
  const lanes output_0_8 = output_0[8];
  const lanes output_0_27 = output_0[27];
  const lanes output_0_46 = output_0[46];
  const lanes output_0_65 = output_0[65];
  const lanes output_0_84 = output_0[84];
  const lanes output_0_103 = output_0[103];
  const lanes output_0_122 = output_0[122];
  const lanes v658 = shared[12];
  const lanes output_0_223 = output_0[223];
  const lanes v779 = output_0_223 - output_0_8 * v247 - output_0_27 * v253 - output_0_46 * v259 - output_0_65 * v265 -
                     output_0_84 * v271 - output_0_103 * v277 - output_0_122 * v636 - v658 * v771;
  const lanes v880 = shared[16];
  const lanes v933 = v779 * v880;
  const lanes v938 = v809 * v933;
  const lanes output_0_9 = output_0[9];
  const lanes output_0_28 = output_0[28];
  const lanes output_0_47 = output_0[47];
  const lanes output_0_66 = output_0[66];
  const lanes output_0_85 = output_0[85];
  const lanes output_0_104 = output_0[104];
  const lanes output_0_123 = output_0[123];
  const lanes v660 = shared[22];
  const lanes v815 = shared[23];
  const lanes output_0_224 = output_0[224];
  const lanes v941 = output_0_224 - output_0_9 * v247 - output_0_28 * v253 - output_0_47 * v259 - output_0_66 * v265 -
                     output_0_85 * v271 - output_0_104 * v277 - output_0_123 * v636 - v660 * v771 - v815 * v933;
  const lanes v1021 = shared[28];
  const lanes v1070 = v941 * v1021;
  const lanes v1075 = v969 * v1070;
  const lanes output_0_10 = output_0[10];
  const lanes output_0_29 = output_0[29];
  const lanes output_0_48 = output_0[48];
  const lanes output_0_67 = output_0[67];
  const lanes output_0_86 = output_0[86];
  const lanes output_0_105 = output_0[105];
  const lanes output_0_124 = output_0[124];
  const lanes v662 = shared[35];
  const lanes v817 = shared[36];
  const lanes v975 = shared[37];
  const lanes output_0_225 = output_0[225];
  const lanes v1078 = output_0_225 - output_0_10 * v247 - output_0_29 * v253 - output_0_48 * v259 - output_0_67 * v265 -
                      output_0_86 * v271 - output_0_105 * v277 - output_0_124 * v636 - v662 * v771 - v817 * v933 -
                      v975 * v1070;
  const lanes v1139 = shared[43];
  const lanes v1184 = v1078 * v1139;
  const lanes v1189 = v1104 * v1184;
  const lanes output_0_11 = output_0[11];
  const lanes output_0_30 = output_0[30];
  const lanes output_0_49 = output_0[49];
  const lanes output_0_68 = output_0[68];
  const lanes output_0_87 = output_0[87];
  const lanes output_0_106 = output_0[106];
  const lanes output_0_125 = output_0[125];
  const lanes v664 = shared[51];
  const lanes v819 = shared[52];
  const lanes v977 = shared[53];
  const lanes v1110 = shared[54];
  const lanes output_0_226 = output_0[226];
  const lanes v1192 = output_0_226 - output_0_11 * v247 - output_0_30 * v253 - output_0_49 * v259 - output_0_68 * v265 -
                      output_0_87 * v271 - output_0_106 * v277 - output_0_125 * v636 - v664 * v771 - v819 * v933 -
                      v977 * v1070 - v1110 * v1184;
  const lanes v1236 = shared[61];
  const lanes v1277 = v1192 * v1236;
  const lanes v1282 = v1216 * v1277;
  const lanes output_0_12 = output_0[12];
  const lanes output_0_31 = output_0[31];
  const lanes output_0_50 = output_0[50];
  const lanes output_0_69 = output_0[69];
  const lanes output_0_88 = output_0[88];
  const lanes output_0_107 = output_0[107];
  const lanes output_0_126 = output_0[126];
  const lanes v666 = shared[70];
  const lanes v821 = shared[71];
  const lanes v979 = shared[72];
  const lanes v1112 = shared[73];
  const lanes v1222 = shared[74];
  const lanes output_0_227 = output_0[227];
  const lanes v1285 = output_0_227 - output_0_12 * v247 - output_0_31 * v253 - output_0_50 * v259 - output_0_69 * v265 -
                      output_0_88 * v271 - output_0_107 * v277 - output_0_126 * v636 - v666 * v771 - v821 * v933 -
                      v979 * v1070 - v1112 * v1184 - v1222 * v1277;
  const lanes v1314 = shared[82];
  const lanes v1357 = v1285 * v1314;
  const lanes v1363 = v1307 * v1357;
  const lanes v279 = shared[1];
  const lanes v801 = shared[11];
  const lanes v961 = shared[21];
  const lanes v1096 = shared[34];
  const lanes v1208 = shared[50];
  const lanes v1299 = shared[69];
  const lanes v1359 = v247 - v279 * v771 - v801 * v933 - v961 * v1070 - v1096 * v1184 - v1208 * v1277 - v1299 * v1357;
  const lanes v1375 = shared[86];
  const lanes v1405 = v1359 * v1375;
  const lanes v1410 = v1325 * v1405;
  const lanes v280 = shared[94];
  const lanes v803 = shared[95];
  const lanes v963 = shared[96];
  const lanes v1098 = shared[97];
  const lanes v1210 = shared[98];
  const lanes v1301 = shared[99];
  const lanes v1319 = shared[100];
  const lanes v1407 =
      v253 - v280 * v771 - v803 * v933 - v963 * v1070 - v1098 * v1184 - v1210 * v1277 - v1301 * v1357 - v1319 * v1405;
  const lanes v1421 = shared[119];
  const lanes v1440 = v1407 * v1421;
  const lanes v1444 = v1384 * v1440;
  const lanes v281 = shared[121];
  const lanes v805 = shared[122];
  const lanes v965 = shared[123];
  const lanes v1100 = shared[124];
  const lanes v1212 = shared[125];
  const lanes v1303 = shared[126];
  const lanes v1321 = shared[127];
  const lanes v1380 = shared[128];
  const lanes v1442 = v259 - v281 * v771 - v805 * v933 - v965 * v1070 - v1100 * v1184 - v1212 * v1277 - v1303 * v1357 -
                      v1321 * v1405 - v1380 * v1440;
  const lanes v1454 = shared[149];
  const lanes v1464 = v1442 * v1454;
  const lanes v1467 = v1428 * v1464;
  const lanes v282 = shared[151];
  const lanes v807 = shared[152];
  const lanes v967 = shared[153];
  const lanes v1102 = shared[154];
  const lanes v1214 = shared[155];
  const lanes v1305 = shared[156];
  const lanes v1323 = shared[157];
  const lanes v1382 = shared[158];
  const lanes v1426 = shared[159];
  const lanes v1466 = v265 - v282 * v771 - v807 * v933 - v967 * v1070 - v1102 * v1184 - v1214 * v1277 - v1305 * v1357 -
                      v1323 * v1405 - v1382 * v1440 - v1426 * v1464;
  const lanes v1476 = shared[182];
  const lanes v1477 = v1466 * v1476;
  const lanes v1478 = v1459 * v1477;
  const lanes v1479 = v271 - v776 - v938 - v1075 - v1189 - v1282 - v1363 - v1410 - v1444 - v1467 - v1478;
  const lanes v1489 = 1.0 / v1479;
  const lanes output_1_0 = output_1[0];
  const lanes output_1_1 = output_1[1];
  const lanes output_1_2 = output_1[2];
  const lanes output_1_3 = output_1[3];
  const lanes output_1_4 = output_1[4];
  const lanes output_1_5 = output_1[5];
  const lanes output_1_6 = output_1[6];
  const lanes v668 = shared[87];
  const lanes v823 = shared[88];
  const lanes v981 = shared[89];
  const lanes v1114 = shared[90];
  const lanes v1224 = shared[91];
  const lanes v1313 = shared[92];
  const lanes v1329 = shared[93];
  const lanes v1388 = shared[120];
  const lanes v1432 = shared[150];
  const lanes v1463 = shared[183];
  const lanes output_1_11 = output_1[11];
  const lanes v1483 = output_1_11 - v247 * output_1_0 - v253 * output_1_1 - v259 * output_1_2 - v265 * output_1_3 -
                      v271 * output_1_4 - v277 * output_1_5 - output_1_6 * v636 - v668 * v771 - v823 * v933 -
                      v981 * v1070 - v1114 * v1184 - v1224 * v1277 - v1313 * v1357 - v1329 * v1405 - v1388 * v1440 -
                      v1432 * v1464 - v1463 * v1477;
  const lanes output_0_259 = output_0[259];
  const lanes output_0_265 = output_0[265];
  const lanes v284 = output_0_259 - output_0_265;
  const lanes v799 = shared[10];
  const lanes output_0_278 = output_0[278];
  const lanes output_0_284 = output_0[284];
  const lanes v811 = output_0_278 - output_0_284 - v284 * v799;
  const lanes v824 = shared[19];
  const lanes v959 = shared[20];
  const lanes output_0_297 = output_0[297];
  const lanes output_0_303 = output_0[303];
  const lanes v971 = output_0_297 - output_0_303 - v284 * v824 - v811 * v959;
  const lanes output_0_316 = output_0[316];
  const lanes output_0_322 = output_0[322];
  const lanes v1106 = output_0_316 - output_0_322 - v284 * v838 - v811 * v982 - v971 * v1094;
  const lanes output_0_335 = output_0[335];
  const lanes output_0_341 = output_0[341];
  const lanes v1218 = output_0_335 - output_0_341 - v284 * v852 - v811 * v995 - v971 * v1115 - v1106 * v1206;
  const lanes output_0_354 = output_0[354];
  const lanes output_0_360 = output_0[360];
  const lanes v1309 =
      output_0_354 - output_0_360 - v284 * v866 - v811 * v1008 - v971 * v1127 - v1106 * v1225 - v1218 * v1297;
  const lanes v273 = shared[3];
  const lanes v1327 = v273 - v284 * v715 - v811 * v881 - v971 * v1022 - v1106 * v1140 - v1218 * v1237 - v1309 * v1315;
  const lanes v274 = shared[103];
  const lanes v1386 =
      v274 - v284 * v729 - v811 * v894 - v971 * v1034 - v1106 * v1151 - v1218 * v1247 - v1309 * v1330 - v1327 * v1376;
  const lanes v275 = shared[131];
  const lanes v1430 = v275 - v284 * v743 - v811 * v907 - v971 * v1046 - v1106 * v1162 - v1218 * v1257 - v1309 * v1339 -
                      v1327 * v1389 - v1386 * v1422;
  const lanes v757 = shared[163];
  const lanes v920 = shared[165];
  const lanes v276 = shared[162];
  const lanes v1461 = v276 - v284 * v757 - v811 * v920 - v971 * v1058 - v1106 * v1173 - v1218 * v1267 - v1309 * v1348 -
                      v1327 * v1397 - v1386 * v1433 - v1430 * v1455;
  const lanes v1481 = v277 - v284 * v771 - v811 * v933 - v971 * v1070 - v1106 * v1184 - v1218 * v1277 - v1309 * v1357 -
                      v1327 * v1405 - v1386 * v1440 - v1430 * v1464 - v1461 * v1477;
  const lanes output_0_228 = output_0[228];
  const lanes output_0_235 = output_0[235];
  const lanes v248 = output_0_228 + output_0_235;
  const lanes output_0_229 = output_0[229];
  const lanes output_0_236 = output_0[236];
  const lanes v254 = output_0_229 + output_0_236;
  const lanes output_0_230 = output_0[230];
  const lanes output_0_237 = output_0[237];
  const lanes v260 = output_0_230 + output_0_237;
  const lanes output_0_231 = output_0[231];
  const lanes output_0_238 = output_0[238];
  const lanes v266 = output_0_231 + output_0_238;
  const lanes output_0_232 = output_0[232];
  const lanes output_0_239 = output_0[239];
  const lanes v272 = output_0_232 + output_0_239;
  const lanes output_0_233 = output_0[233];
  const lanes output_0_240 = output_0[240];
  const lanes v278 = output_0_233 + output_0_240;
  const lanes output_0_234 = output_0[234];
  const lanes v590 = output_0_234 - output_0_6 * v248 - output_0_25 * v254 - output_0_44 * v260 - output_0_63 * v266 -
                     output_0_82 * v272 - output_0_101 * v278;
  const lanes v645 = v590 * v599;
  const lanes output_0_241 = output_0[241];
  const lanes v647 = output_0_241 - output_0_7 * v248 - output_0_26 * v254 - output_0_45 * v260 - output_0_64 * v266 -
                     output_0_83 * v272 - output_0_102 * v278 - output_0_121 * v645;
  const lanes v785 = v647 * v714;
  const lanes output_0_242 = output_0[242];
  const lanes v793 = output_0_242 - output_0_8 * v248 - output_0_27 * v254 - output_0_46 * v260 - output_0_65 * v266 -
                     output_0_84 * v272 - output_0_103 * v278 - output_0_122 * v645 - v658 * v785;
  const lanes v946 = v793 * v880;
  const lanes output_0_243 = output_0[243];
  const lanes v954 = output_0_243 - output_0_9 * v248 - output_0_28 * v254 - output_0_47 * v260 - output_0_66 * v266 -
                     output_0_85 * v272 - output_0_104 * v278 - output_0_123 * v645 - v660 * v785 - v815 * v946;
  const lanes v1082 = v954 * v1021;
  const lanes output_0_244 = output_0[244];
  const lanes v1090 = output_0_244 - output_0_10 * v248 - output_0_29 * v254 - output_0_48 * v260 - output_0_67 * v266 -
                      output_0_86 * v272 - output_0_105 * v278 - output_0_124 * v645 - v662 * v785 - v817 * v946 -
                      v975 * v1082;
  const lanes v1195 = v1090 * v1139;
  const lanes output_0_245 = output_0[245];
  const lanes v1203 = output_0_245 - output_0_11 * v248 - output_0_30 * v254 - output_0_49 * v260 - output_0_68 * v266 -
                      output_0_87 * v272 - output_0_106 * v278 - output_0_125 * v645 - v664 * v785 - v819 * v946 -
                      v977 * v1082 - v1110 * v1195;
  const lanes v1287 = v1203 * v1236;
  const lanes output_0_246 = output_0[246];
  const lanes v1295 = output_0_246 - output_0_12 * v248 - output_0_31 * v254 - output_0_50 * v260 - output_0_69 * v266 -
                      output_0_88 * v272 - output_0_107 * v278 - output_0_126 * v645 - v666 * v785 - v821 * v946 -
                      v979 * v1082 - v1112 * v1195 - v1222 * v1287;
  const lanes v1366 = v1295 * v1314;
  const lanes v1368 = v248 - v279 * v785 - v801 * v946 - v961 * v1082 - v1096 * v1195 - v1208 * v1287 - v1299 * v1366;
  const lanes v1413 = v1368 * v1375;
  const lanes v1415 =
      v254 - v280 * v785 - v803 * v946 - v963 * v1082 - v1098 * v1195 - v1210 * v1287 - v1301 * v1366 - v1319 * v1413;
  const lanes v1447 = v1415 * v1421;
  const lanes v1449 = v260 - v281 * v785 - v805 * v946 - v965 * v1082 - v1100 * v1195 - v1212 * v1287 - v1303 * v1366 -
                      v1321 * v1413 - v1380 * v1447;
  const lanes v1470 = v1449 * v1454;
  const lanes v1472 = v266 - v282 * v785 - v807 * v946 - v967 * v1082 - v1102 * v1195 - v1214 * v1287 - v1305 * v1366 -
                      v1323 * v1413 - v1382 * v1447 - v1426 * v1470;
  const lanes v1484 = v1472 * v1476;
  const lanes v1486 = v272 - v283 * v785 - v809 * v946 - v969 * v1082 - v1104 * v1195 - v1216 * v1287 - v1307 * v1366 -
                      v1325 * v1413 - v1384 * v1447 - v1428 * v1470 - v1459 * v1484;
  const lanes v1490 = v1486 * v1489;
  const lanes output_1_12 = output_1[12];
  const lanes v1494 = output_1_12 - v248 * output_1_0 - v254 * output_1_1 - v260 * output_1_2 - v266 * output_1_3 -
                      v272 * output_1_4 - v278 * output_1_5 - output_1_6 * v645 - v668 * v785 - v823 * v946 -
                      v981 * v1082 - v1114 * v1195 - v1224 * v1287 - v1313 * v1366 - v1329 * v1413 - v1388 * v1447 -
                      v1432 * v1470 - v1463 * v1484 - v1483 * v1490;
  const lanes v791 = v284 * v785;
  const lanes v952 = v811 * v946;
  const lanes v1088 = v971 * v1082;
  const lanes v1201 = v1106 * v1195;
  const lanes v1293 = v1218 * v1287;
  const lanes v1373 = v1309 * v1366;
  const lanes v1419 = v1327 * v1413;
  const lanes v1452 = v1386 * v1447;
  const lanes v1474 = v1430 * v1470;
  const lanes v1487 = v1461 * v1484;
  const lanes v1491 = v1481 * v1490;
  const lanes v1492 = v278 - v791 - v952 - v1088 - v1201 - v1293 - v1373 - v1419 - v1452 - v1474 - v1487 - v1491;
  const lanes v1653 = v1494 / v1492;
  const lanes v1655 = v1481 * v1653;
  const lanes v1656 = v1483 - v1655;
  const lanes v1663 = v1489 * v1656;
  const lanes v1665 = v1459 * v1663;
  const lanes v1667 = v1461 * v1653;
  const lanes v1668 = v1463 - v1665 - v1667;
  const lanes v1674 = v1476 * v1668;
  const lanes v1676 = v1426 * v1674;
  const lanes v1678 = v1428 * v1663;
  const lanes v1680 = v1430 * v1653;
  const lanes v1681 = v1432 - v1676 - v1678 - v1680;
  const lanes v1687 = v1454 * v1681;
  const lanes v1689 = v1380 * v1687;
  const lanes v1691 = v1382 * v1674;
  const lanes v1693 = v1384 * v1663;
  const lanes v1695 = v1386 * v1653;
  const lanes v1696 = v1388 - v1689 - v1691 - v1693 - v1695;
  const lanes v1702 = v1421 * v1696;
  const lanes v1704 = v1319 * v1702;
  const lanes v1706 = v1321 * v1687;
  const lanes v1708 = v1323 * v1674;
  const lanes v1710 = v1325 * v1663;
  const lanes v1712 = v1327 * v1653;
  const lanes v1713 = v1329 - v1704 - v1706 - v1708 - v1710 - v1712;
  const lanes v1719 = v1375 * v1713;
  const lanes v1726 =
      v1313 - v1299 * v1719 - v1301 * v1702 - v1303 * v1687 - v1305 * v1674 - v1307 * v1663 - v1309 * v1653;
  const lanes v1728 = v1314 * v1726;
  const lanes v1736 = v1224 - v1222 * v1728 - v1208 * v1719 - v1210 * v1702 - v1212 * v1687 - v1214 * v1674 -
                      v1216 * v1663 - v1218 * v1653;
  const lanes v1738 = v1236 * v1736;
  const lanes v1747 = v1114 - v1110 * v1738 - v1112 * v1728 - v1096 * v1719 - v1098 * v1702 - v1100 * v1687 -
                      v1102 * v1674 - v1104 * v1663 - v1106 * v1653;
  const lanes v1749 = v1139 * v1747;
  const lanes v1759 = v981 - v975 * v1749 - v977 * v1738 - v979 * v1728 - v961 * v1719 - v963 * v1702 - v965 * v1687 -
                      v967 * v1674 - v969 * v1663 - v971 * v1653;
  const lanes v1761 = v1021 * v1759;
  const lanes v1772 = v823 - v815 * v1761 - v817 * v1749 - v819 * v1738 - v821 * v1728 - v801 * v1719 - v803 * v1702 -
                      v805 * v1687 - v807 * v1674 - v809 * v1663 - v811 * v1653;
  const lanes v1774 = v880 * v1772;
  const lanes v1786 = v668 - v658 * v1774 - v660 * v1761 - v662 * v1749 - v664 * v1738 - v666 * v1728 - v279 * v1719 -
                      v280 * v1702 - v281 * v1687 - v282 * v1674 - v283 * v1663 - v284 * v1653;
  const lanes v1788 = v714 * v1786;
  const lanes v1795 = output_1_6 - output_0_121 * v1788 - output_0_122 * v1774 - output_0_123 * v1761 -
                      output_0_124 * v1749 - output_0_125 * v1738 - output_0_126 * v1728;
  const lanes v1798 = v599 * v1795;
  step[6] = v1798;
  const lanes v1876 = v1719 + output_0_6 * v1798 + output_0_7 * v1788 + output_0_8 * v1774 + output_0_9 * v1761 +
                      output_0_10 * v1749 + output_0_11 * v1738 + output_0_12 * v1728 - output_1_0 - v1719;
  step[0] = -v1876;
  const lanes v1874 = v1702 + output_0_25 * v1798 + output_0_26 * v1788 + output_0_27 * v1774 + output_0_28 * v1761 +
                      output_0_29 * v1749 + output_0_30 * v1738 + output_0_31 * v1728 - output_1_1 - v1702;
  step[1] = -v1874;
  const lanes v1872 = v1687 + output_0_44 * v1798 + output_0_45 * v1788 + output_0_46 * v1774 + output_0_47 * v1761 +
                      output_0_48 * v1749 + output_0_49 * v1738 + output_0_50 * v1728 - output_1_2 - v1687;
  step[2] = -v1872;
  const lanes v1870 = v1674 + output_0_63 * v1798 + output_0_64 * v1788 + output_0_65 * v1774 + output_0_66 * v1761 +
                      output_0_67 * v1749 + output_0_68 * v1738 + output_0_69 * v1728 - output_1_3 - v1674;
  step[3] = -v1870;
  const lanes v1868 = v1663 + output_0_82 * v1798 + output_0_83 * v1788 + output_0_84 * v1774 + output_0_85 * v1761 +
                      output_0_86 * v1749 + output_0_87 * v1738 + output_0_88 * v1728 - output_1_4 - v1663;
  step[4] = -v1868;
  const lanes v1866 = v1653 + output_0_101 * v1798 + output_0_102 * v1788 + output_0_103 * v1774 +
                      output_0_104 * v1761 + output_0_105 * v1749 + output_0_106 * v1738 + output_0_107 * v1728 -
                      output_1_5 - v1653;
  step[5] = -v1866;
  step[7] = v1719 - v1876;
  step[8] = v1702 - v1874;
  step[9] = v1687 - v1872;
  step[10] = v1674 - v1870;
  step[11] = v1663 - v1868;
  step[12] = v1653 - v1866;
  step[13] = v1788 - v1719;
  step[14] = v1774 - v1702;
  step[15] = v1761 - v1687;
  step[16] = v1749 - v1674;
  step[17] = v1738 - v1663;
  step[18] = v1728 - v1653;
  const lanes output_0_120 = output_0[120];
  const lanes v1495 = absolute(output_0_120);
  const lanes v656 = shared[6];
  const lanes v1501 = 1000.0 * absolute(v656);
  const lanes v813 = shared[15];
  const lanes v1512 = 1000.0 * absolute(v813);
  const lanes v973 = shared[27];
  const lanes v1524 = 1000.0 * absolute(v973);
  const lanes v1108 = shared[42];
  const lanes v1537 = 1000.0 * absolute(v1108);
  const lanes v1220 = shared[60];
  const lanes v1551 = 1000.0 * absolute(v1220);
  const lanes v1311 = shared[81];
  const lanes v1566 = 1000.0 * absolute(v1311);
  const lanes v1715 =
      absolute(v1329) + absolute(v1704) + absolute(v1706) + absolute(v1708) + absolute(v1710) + absolute(v1712);
  const mask v1701 = 100000000.0 * absolute(v1696) >=
                     absolute(v1388) + absolute(v1689) + absolute(v1691) + absolute(v1693) + absolute(v1695);
  const mask v1686 =
      100000000.0 * absolute(v1681) >= absolute(v1432) + absolute(v1676) + absolute(v1678) + absolute(v1680);
  const lanes v1649 = absolute(v278) + absolute(v791) + absolute(v952) + absolute(v1088) + absolute(v1201) +
                      absolute(v1293) + absolute(v1373) + absolute(v1419) + absolute(v1452) + absolute(v1474) +
                      absolute(v1487) + absolute(v1491);
  const lanes v1633 = absolute(v271) + absolute(v776) + absolute(v938) + absolute(v1075) + absolute(v1189) +
                      absolute(v1282) + absolute(v1363) + absolute(v1410) + absolute(v1444) + absolute(v1467) +
                      absolute(v1478);
  const lanes v1457 = shared[181];
  const lanes v264 = shared[160];
  const lanes v761 = shared[164];
  const lanes v924 = shared[166];
  const lanes v1062 = shared[168];
  const lanes v1177 = shared[170];
  const lanes v1271 = shared[172];
  const lanes v1353 = shared[174];
  const lanes v1401 = shared[176];
  const lanes v1436 = shared[178];
  const lanes v1456 = shared[180];
  const lanes v1618 = absolute(v264) + absolute(v761) + absolute(v924) + absolute(v1062) + absolute(v1177) +
                      absolute(v1271) + absolute(v1353) + absolute(v1401) + absolute(v1436) + absolute(v1456);
  const lanes v1424 = shared[148];
  const lanes v257 = shared[129];
  const lanes v746 = shared[133];
  const lanes v910 = shared[135];
  const lanes v1049 = shared[137];
  const lanes v1165 = shared[139];
  const lanes v1260 = shared[141];
  const lanes v1343 = shared[143];
  const lanes v1392 = shared[145];
  const lanes v1423 = shared[147];
  const lanes v1604 = absolute(v257) + absolute(v746) + absolute(v910) + absolute(v1049) + absolute(v1165) +
                      absolute(v1260) + absolute(v1343) + absolute(v1392) + absolute(v1423);
  const lanes v1378 = shared[118];
  const lanes v250 = shared[101];
  const lanes v731 = shared[105];
  const lanes v896 = shared[107];
  const lanes v1036 = shared[109];
  const lanes v1153 = shared[111];
  const lanes v1249 = shared[113];
  const lanes v1333 = shared[115];
  const lanes v1377 = shared[117];
  const lanes v1591 = absolute(v250) + absolute(v731) + absolute(v896) + absolute(v1036) + absolute(v1153) +
                      absolute(v1249) + absolute(v1333) + absolute(v1377);
  const lanes v1317 = shared[85];
  const lanes v243 = shared[0];
  const lanes v716 = shared[9];
  const lanes v882 = shared[18];
  const lanes v1023 = shared[30];
  const lanes v1141 = shared[45];
  const lanes v1238 = shared[63];
  const lanes v1316 = shared[84];
  const lanes v1579 = absolute(v243) + absolute(v716) + absolute(v882) + absolute(v1023) + absolute(v1141) +
                      absolute(v1238) + absolute(v1316);
  const lanes v712 = shared[75];
  const lanes v878 = shared[76];
  const lanes v1019 = shared[77];
  const lanes v1137 = shared[78];
  const lanes v1234 = shared[79];
  const lanes v1310 = shared[80];
  const lanes v1563 =
      absolute(v712) + absolute(v878) + absolute(v1019) + absolute(v1137) + absolute(v1234) + absolute(v1310);
  const lanes v1564 = absolute(output_0_360);
  const lanes v702 = shared[55];
  const lanes v863 = shared[56];
  const lanes v1005 = shared[57];
  const lanes v1124 = shared[58];
  const lanes v1219 = shared[59];
  const lanes v1548 = absolute(v702) + absolute(v863) + absolute(v1005) + absolute(v1124) + absolute(v1219);
  const lanes v1549 = absolute(output_0_340);
  const lanes v692 = shared[38];
  const lanes v848 = shared[39];
  const lanes v991 = shared[40];
  const lanes v1107 = shared[41];
  const lanes v1534 = absolute(v692) + absolute(v848) + absolute(v991) + absolute(v1107);
  const lanes output_0_320 = output_0[320];
  const lanes v1535 = absolute(output_0_320);
  const lanes v682 = shared[24];
  const lanes v833 = shared[25];
  const lanes v972 = shared[26];
  const lanes v1521 = absolute(v682) + absolute(v833) + absolute(v972);
  const lanes output_0_300 = output_0[300];
  const lanes v1522 = absolute(output_0_300);
  const lanes v672 = shared[13];
  const lanes v812 = shared[14];
  const lanes v1509 = absolute(v672) + absolute(v812);
  const lanes output_0_280 = output_0[280];
  const lanes v1510 = absolute(output_0_280);
  const lanes v655 = shared[5];
  const lanes v1497 = absolute(v655);
  const lanes output_0_260 = output_0[260];
  const lanes v1498 = absolute(output_0_260);
  const mask v1842 = ((v1512 > v1509 + v1510) & (1000.0 * v1510 >= v1509)) &
                     ((v1495 > 0.0) & ((v1501 > v1497 + v1498) & (v1498 * 1000.0 >= v1497)));
  const mask v1844 = ((v1537 > v1534 + v1535) & (1000.0 * v1535 >= v1534)) &
                     (((v1524 > v1521 + v1522) & (1000.0 * v1522 >= v1521)) & v1842);
  const mask v1846 = ((v1566 > v1563 + v1564) & (1000.0 * v1564 >= v1563)) &
                     (((v1551 > v1548 + v1549) & (1000.0 * v1549 >= v1548)) & v1844);
  const mask v1849 = (1000.0 * absolute(v1424) > v1604) &
                     ((1000.0 * absolute(v1378) > v1591) & ((1000.0 * absolute(v1317) > v1579) & v1846));
  const mask v1852 = (1000.0 * absolute(v1492) > v1649) &
                     ((1000.0 * absolute(v1479) > v1633) & ((1000.0 * absolute(v1457) > v1618) & v1849));
  const mask v1854 = (100000000.0 * absolute(v1668) >= absolute(v1463) + absolute(v1665) + absolute(v1667)) &
                     ((100000000.0 * absolute(v1656) >= absolute(v1483) + absolute(v1655)) & v1852);
  const mask v1859 =
      (v1551 >= 1.0) & ((v1566 >= 1.0) & ((100000000.0 * absolute(v1713) >= v1715) & (v1701 & (v1686 & v1854))));
  const mask v1864 =
      (v1495 * 1000.0 >= 1.0) & ((v1501 >= 1.0) & ((v1512 >= 1.0) & ((v1524 >= 1.0) & ((v1537 >= 1.0) & v1859))));
  trusted[0] = where(v1864, fill(1.0), fill(0.0));
}

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  lanes shared[189];
  run_0(inputs, outputs, results, shared);
  run_1(inputs, outputs, results, shared);
}

static const neml2_kernel_array kernel_inputs[] = {{"output_0", 361, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0},
                                                   {"output_1", 19, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const signed char output_1_structure[] = {0};
static const neml2_kernel_array kernel_outputs[] = {
    {"step", 19, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure},
    {"trusted", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_1_structure}};

const neml2_kernel neml2_kernel_viscoplastic_solve = {
    NEML2_KERNEL_VERSION,
    sizeof(neml2_kernel),
    "viscoplastic_solve",
    "f08deb4376604cc29377e514bb0d9da508ce2c9542684f35702127430402dd3d",
    sizeof(real),
    LANES,
    2,
    2,
    kernel_inputs,
    kernel_outputs,
    2616,
    0,
    0,
    run};
