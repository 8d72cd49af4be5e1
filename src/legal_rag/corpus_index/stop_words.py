"""French stop words, general and legal."""

# Between two words of one expression: "compte de campagne", "impôt sur le revenu", "hygiène et sécurité".
LINKS = frozenset("a au aux d' de des du en et l' la le les par pour sans sur".split())
# Before a noun, in French and in English.
DETERMINERS = frozenset(
    """
    l' la le les un une des du au aux ce cet cette ces son sa ses leur leurs notre nos votre vos mon ma mes aucun
    aucune tout toute chaque quelque the an any this these such each no its their our your
    """.split()
)

_FUNCTION = """
afin ai aie aient ailleurs ainsi ait alentour alors apres as au aucun aucune aucunes aucuns aujourd aupres auquel aura
aurai auraient aurais aurait auront aussi aussitot autant autre autrement autres autrui aux auxquelles auxquels
avaient avais avait avant avec avez avoir avoit avons ayant ayants ayez ayons bien bientot c ca car ce ceci cela celle
celles celui cependant certain certaine certaines certains ces cet cette ceux chacun chacune chaque chez ci combien
comme comment compris concernant contre d dans davantage de dedans dehors deja dela depuis derriere des desormais
desquelles desquels dessous dessus devant donc dont dorenavant du duquel durant egalement elle elles en encontre
encore enfin enormement ensemble ensuite entre envers environ es essentiellement est et etaient etais etait etant
etants etc ete etes etions etre eu eue eues eurent eus eusse eussent eut eux exactement excepte expressement
extremement finalement fois font fors furent fusse fussent fut generalement guere hormis hors hui ici il ils j jadis
jamais je jusqu jusque jusques l la laquelle largement le lequel les lesquelles lesquels leur leurs librement loin
longtemps lors lorsqu lorsque lui m ma maintes maints mais malgre manifestement me meme memes mes mieux mlle mlles mm
mme mmes moi moindre moins mon moyennant n naguere ne neanmoins necessairement ni nombreuses nombreux non nonobstant
nos notamment notoirement notre nous nul nulle nullement on or ou ouais outre par parce parfois parmi partant
particulierement partout pas passim pendant peu peut peut-etre peuvent pire pleinement plupart plus plusieurs plutot
point pour pourquoi pourtant pourvu pratiquement precedemment precisement pres presqu presque principalement prochain
proprement puis puisqu puisque purement qu quand quant quarante quasi que quel quelconque quelle quelles quelqu
quelque quelquefois quelques quels qui quiconque quoi quoiqu quoique rapidement recemment reellement respectif
respectifs respective respectivement respectives rien s sa sans sauf se selon sera serai seraient serais serait seront
ses seul seule seulement seules seuls si sien sienne siennes siens simplement simultanement sinon soi soient sois soit
sommes son sont sous souvent specialement successivement suffisamment suis suivant suivante suivantes suivants sur
surtout t ta tandis tant tantot tard te tel telle tellement telles tels tes toi ton tot totalement toujours tous tout
toute toutefois toutes tres trop tu un une unes uniquement uns vainement valablement vers via vis voici voila voire
vos votre vous vraiment vu vue y
"""

_VERBS = """
a accorde accordee accorder ai allait aller apparaissent apparait appartenait appartiennent appartient apporte
apportee apportent apporter apportes attend aura aurait avaient avait avise ayant cesse comporte comporter concerne
concernent conserve constituait constitue constituent constituer contiennent contient convenait convient deduit
demeurant demeure demeurent devaient devait devant devenir devenu devenue devoir devra devrait devront dire dit dite
dites dits doit doivent donnant donne donnee donnent donner donnes du due dus effectue effectuee effectuer effectues
entend entendait entendu entraine entrainer est estime estimer etabli etablie etablir etablis etablit etaient etait
etant ete eu faire fais faisaient faisait faisant fait faite faites faits fasse fassent faut fera ferait feront
figurant figure figurent fit fixe fixee fonde fondee font forme formee incombe indique indiquee indiquer invoque
invoquee invoquer joint jointe jointes laisse laisser lieu mentionne mentionnee mentionnees mentionnes met mettre mis
mise mises obtenir obtenu obtient ont parait parvenir permet permettait permettant permettent permettre permis peut
peuvent portant porte portent porter pourra pourraient pourrait pourront pouvaient pouvait pouvant pouvoir pouvoirs
precise precisee preciser prenant prend prendre prennent present presente presentee presentees presentent presenter
presentes presents prevoient prevoit prevu prevue prevues prevus pris prise prises procede procedee proceder produire
produit produite produites produits proviennent provient pu puisse puissent recevoir recu recus regarde regardee
regarder regardes relatif relatifs relative relatives releve relever remis remise rend rendre rendu rendue reste
restent resultait resultant resulte resultent retenir retenu retenue retient sait sauraient saurait savoir sera serait
sont soutenait soutenir soutiennent soutient statuant statue statuer suffit suit suivre suppose tend tendant tenir
tenu tenue tenus tiennent tient tire tiree tirees tirer tires trouvait trouve trouvee trouvent trouver utile utiles va
valoir vaut venir veut viennent vient vise visee visees viser vises voir voit vont vouloir voulu
"""

# Of procedure, not of what a decision is about.
_OF_DECISIONS = """
adresse affaire affaires alias alinea alineas an annee annees annexe annexes ans appel appelant appelante appelantes
appelants appels applicable applicables application appliquer arret arrete arrets article articles assiste assistee
attaque attaquee attaquees attaques attendu attendus audience audiences audit auxdits avenue avocat avocats avoue
avoues base bis bon bonjour bonne boulevard cas cassation cause causes certain chambre chef chefs chemin chose choses
ci-apres ci-dessus ci-joint circ circonscription circonstance circonstances civil civile code codes conclusions
condamne condamnee condamnees condamner condamnes condition conditions confirme confirmer conseil conseiller
conseillere conseillers consequence consequences considerant considerants considerer consorts copie cordialement cour
cours dame date dates debat debats deboute debouter decide decidee decider decision decisions defenderesse
defenderesses defendeur defendeurs defense deferee deliberation delibere deliberee demandant demande demandee demander
demanderesse demanderesses demandes demandeur demandeurs depens dernier derniere dernieres derniers desdites desdits
different differente differentes differents dirigee disposant dispose disposer dispositif disposition dispositions
domicile domicilie domiciliee domiciliees domicilies dossier dudit effet effets egard element elements enonce enoncee
enoncees enoncer enonces enonciations enregistre enregistree enregistrees enregistres ensemble entier entiere epoque
epouse epoux espece etat eur eurl euro euros exemple facon faits fin fins fond fondement franc francs general generale
generales generaux gie gmbh grand grande grandes grands greffe greffier grief griefs heure heures impasse importance
important importante infirme infirmer influence instance interesse interessee interesses intervenant intervenante
intime intimee intimees intimes issue jour jours juge jugee jugement jugements juger juges kilometres ladite ledit
legal legale legales legaux lesdites lesdits litige loi lois madame mademoiselle mademoiselles maitre mandataire
maniere matiere meconnaissance meconnait meconnu memoire memoires merci mesdames messieurs mesure metre metres minute
minutes mois moment monsieur montant montants motif motifs motivation moyen moyens nature ne nee nes nom nombre
notification notifie notifiee nouveau nouveaux nouvelle nouvelles numero numeros objet observations ordre oui outre
paragraphe part partie parties personne personnes piece pieces place plaise plein pleine point points possible
possibles pourvoi pourvois precedent precedente precedentes precedents precite precitee precitees precites premier
premiere premieres premiers prenom prenoms president presidente presidents principal principale principaux proceder
procedure procedures propos propre propres public publie publiee publique question questions raison raisons rapport
rapporteur redaction regard regle regles rejet rejetee rejetees rejeter rejette represente representee representes
requerant requerante requerantes requerants requete requetes ressort rue sa salutations sarl sas sasu sccv sci scp
seance second seconde secondes seconds secretaire secretariat selarl selas semaine semaines sens seul siege siegeaient
siegeant sieur simple snc somme sommes sort spa suite sujet surplus susdit susdite susvise susvisee susvisees susvises
tenant ter terme termes texte textes tiers titre titres total totale tribunal tribunaux ttc unique version vertu
vigueur violation viole violer visa
"""

_NUMBERS = """
aout avril cent centaine centaines cents cinq cinquante cinquieme decembre demi demie deux deuxieme dimanche dix dix-
huitieme dix-neuvieme dix-septieme dixieme dizaine douzaine douze douzieme fevrier huit huitieme janvier jeudi juillet
juin lundi mai mardi mars mercredi mille milliard milliards million millions moitie neuf neuvieme novembre octobre
onze onzieme premier quarante quart quatorze quatorzieme quatre quatrieme quinzaine quinze quinzieme samedi seize
seizieme sept septembre septieme six sixieme soixante tiers treize treizieme trentaine trente trentieme trois
troisieme un vendredi vingt vingtaine vingtieme zero
"""

# Contracts and letters may be in English, quotations in German.
_ENGLISH = """
about above after again all also among and any are at be been before being below between both by can cannot could das
dem den der did does doing down during each either every from fur further had has have having her here hereby herein
hereof hereto hereunder him his how however if in into is ist it its itself may might mit more most must neither nicht
nor not of off once only other others otherwise our ours out over own said same shall she should so some such than
that the their theirs them then there thereby therefor therefore therein thereof thereto these they this those through
thus to too und under until up upon von was were what when where whereas whether which while who whom whose why will
with within without would you your yours
"""

FUNCTION_WORDS = frozenset(_FUNCTION.split()) | frozenset(_NUMBERS.split())  # dropped from hyphenated words, too
STOP_WORDS = FUNCTION_WORDS.union(*(words.split() for words in (_VERBS, _OF_DECISIONS, _ENGLISH)))

# They make one term with the word after the hyphen: "non-concurrence", "sous-traitance".
PREFIXES = frozenset(
    """
    anti auto avant co contre demi ex extra inter intra mi micro mini multi non para poly post pre pro quasi re semi
    sous sur ultra vice
    """.split()
)
